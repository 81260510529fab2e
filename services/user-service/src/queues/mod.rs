//! The jobs that wait for workers, for administrators. Operators have the same numbers as metrics.

pub(crate) mod routes;
