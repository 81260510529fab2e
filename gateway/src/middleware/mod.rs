//! Middleware for every response: CORS, HSTS and the rule for `HEAD`; and the rate limit of the gateway's own paths.

pub(crate) mod cors;
pub(crate) mod counted;
pub(crate) mod head_requests;
pub(crate) mod hsts;
