pub(crate) mod circuit_breaker;
pub(crate) mod concurrency;
pub(crate) mod rate_limit;
pub(crate) mod turns;
