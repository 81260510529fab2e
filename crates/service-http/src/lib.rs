//! The HTTP code that both services share. The gateway does not use it, because it knows neither database
//! nor broker.
//!
//! - [`database_problem()`] maps a failure of the database to a response; [`DatabaseProblems`] documents it.
//! - [`BearerToken`] documents the access token.
//! - [`QueueResponse`] shows a queue to administrators.
//! - [`mount()`] adds `/healthz`, `/readyz`, `/openapi.json` and the `404` and `405` fallback.

mod database_problem;
mod mount;
mod queue_response;

pub use database_problem::{DatabaseProblems, database_problem};
pub use mount::{BearerToken, Document, mount};
pub use queue_response::QueueResponse;
