//! The dashboard: the page on which people see their tasks, which the operator configures.

mod responses;
pub(crate) mod routes;
