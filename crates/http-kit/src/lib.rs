//! What every HTTP process shares.
//!
//! - [`Problem`]: the one form of an error (RFC 9457), the one mapping from a failure to a response.
//! - [`JsonBody`], [`OptionalJsonBody`], [`Fields`]: bodies with a limit, read field by field, so that
//!   every bad field is named at once and an unknown field is never assigned.
//! - [`Query`] and [`path_id`]: values of query and path.
//! - [`request_context`]: the middleware that gives a request its identity, its log line and its metrics.
//! - [`Routes`]: what exists, from the OpenAPI document: unknown paths are `404`, wrong methods `405`.
//! - [`problem_responses!`]: types that document problems in OpenAPI, with examples made of the problems.
//! - [`Health`]: `/healthz` and `/readyz`.
//! - [`forwarded_for`]: the client's address behind proxies; [`client_network`]: what its limits are counted by.
//!
//! Nothing here knows tokens, the database or the queue.

mod body;
mod client_network;
mod combine;
mod documentation;
mod fields;
pub mod forwarded_for;
mod health;
mod middleware;
mod problem;
mod query;
mod routes;

pub use body::{BODY_LIMIT, JsonBody, OptionalJsonBody, body_too_large, incomplete_body};
pub use client_network::client_network;
pub use combine::combine_errors;
pub use documentation::{BodyProblems, DocumentedProblem, ProblemGroup, QueryProblems};
pub use fields::{FieldValue, Fields};
pub use health::{Health, healthz, readyz};
pub use middleware::{REQUEST_ID, TRACEPARENT, request_context};
pub use problem::{FieldError, Problem, ProblemBody, whole_seconds};
pub use query::{Query, path_id};
pub use routes::Routes;
#[doc(hidden)]
pub use utoipa;
