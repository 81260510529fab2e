//! The jobs that wait for workers, for administrators. Operators have the same numbers as metrics.

mod responses;
pub(crate) mod routes;
