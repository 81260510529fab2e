//! What waits to be delivered, for administrators. Operators have the same numbers as metrics.

mod responses;
pub(crate) mod routes;
