//! Building blocks that every HTTP process shares. Nothing here depends on tokens, the database or the queue.

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
pub use documentation::{
    BodyProblems, ProblemGroup, QueryProblems, join_problems, separate_responses,
};
pub use fields::{FieldValue, Fields, json_object, json_text};
pub use forwarded_for::client_network;
pub use health::{Checked, Health, healthz, readyz};
pub use middleware::{
    REQUEST_ID, TRACEPARENT, request_context, unreadable_request, waited_for_caller,
};
pub use mount::{Routes, complete, mount};
pub use problem::{FieldError, Problem, ProblemBody, whole_seconds};
pub use query::{Query, combine_errors, path_id};
#[doc(hidden)]
pub use utoipa;
