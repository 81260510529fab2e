//! The dashboard: the page on which people see their tasks, which the operator configures.

pub(crate) mod routes;
