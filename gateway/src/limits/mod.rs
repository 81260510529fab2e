//! Limits that keep callers and dead services from exhausting the gateway.

pub(crate) mod circuit_breaker;
pub(crate) mod concurrency;
pub(crate) mod rate_limit;
pub(crate) mod turns;
