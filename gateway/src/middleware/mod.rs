//! Middleware for every response: CORS, HSTS and the rule for `HEAD`.

pub(crate) mod cors;
pub(crate) mod head_requests;
pub(crate) mod hsts;
