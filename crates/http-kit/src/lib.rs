//! Building blocks that every HTTP process shares.
//!
//! - [`Problem`]: the form of all error responses (RFC 9457).
//! - [`JsonBody`], [`OptionalJsonBody`], [`Fields`]: size-limited bodies, parsed field by field, so that a
//!   response reports every invalid field.
//! - [`Query`] and [`path_id`]: values of query and path.
//! - [`request_context`]: the middleware for the request id, the log line and the metrics of a request.
//! - [`unreadable_request`]: the response to a request that is not HTTP.
//! - [`Routes`]: the routes of the OpenAPI document: other paths are `404`, other methods `405`.
//! - [`mount()`] adds the probes and the `404` and `405` fallback to the routes of a service.
//! - [`complete`]: what the operations of a document have in common.
//! - [`problem_responses!`]: types that document problems in OpenAPI, with examples made of the problems.
//! - [`schemas!`]: types with a schema in OpenAPI that no derive can write.
//! - [`Health`]: the liveness and readiness probes, `/healthz` and `/readyz`.
//! - [`forwarded_for`]: the client's address behind proxies; [`client_network()`]: the unit by which it is limited.
//!
//! Nothing here depends on tokens, the database or the queue.

mod body;
mod documentation;
mod exact_json;
mod extractors;
mod fields;
pub mod forwarded_for;
mod health;
mod middleware;
mod mount;
mod problem;
mod query;

pub use body::{BODY_LIMIT, JsonBody, OptionalJsonBody, body_too_large, incomplete_body};
pub use documentation::{BodyProblems, ProblemGroup, QueryProblems};
pub use fields::{FieldValue, Fields, json_object, json_text};
pub use forwarded_for::client_network;
pub use health::{Checked, Health, healthz, readyz};
pub use middleware::{REQUEST_ID, TRACEPARENT, Waited, request_context, unreadable_request};
pub use mount::{Routes, complete, mount};
pub use problem::{FieldError, Problem, ProblemBody, whole_seconds};
pub use query::{Query, combine_errors, path_id};
#[doc(hidden)]
pub use utoipa;
