//! Where people see their tasks: the page that the operator names.

mod responses;
pub(crate) mod routes;
