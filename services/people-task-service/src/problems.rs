//! The problems that operations can answer with, for the OpenAPI document: one type for each status,
//! with an example for each code. The examples are made by the code that answers.

use std::collections::BTreeMap;

use actix_web::http::StatusCode;
use http_kit::Problem;
use utoipa::IntoResponses;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::{Ref, RefOr, Response, ResponseBuilder};
use values::Invalid;

use crate::status::TaskStatus;
use crate::{deliveries, tasks, webhooks};

fn response(description: &str, problems: &[Problem]) -> RefOr<Response> {
    let examples = problems.iter().map(|problem| {
        let mut body = problem.body();
        "0b5c1d".clone_into(&mut body.request_id);
        let value = serde_json::to_value(body).unwrap_or_default();
        let example = ExampleBuilder::new().value(Some(value)).build();
        (problem.code().to_owned(), example)
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build();
    let response = ResponseBuilder::new().description(description);
    response
        .content("application/problem+json", content)
        .build()
        .into()
}

/// Makes types that document one status each.
macro_rules! problem_responses {
    ($($(#[$doc:meta])* $name:ident = $status:literal $description:literal [$($problem:expr),+ $(,)?];)+) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                let problems = [$($problem),+];
                BTreeMap::from([($status.to_owned(), response($description, &problems))])
            }
        }
    )+};
}

fn invalid(field: &'static str, code: &'static str, message: &'static str) -> Problem {
    Problem::invalid_field(field, Invalid::new(code, message))
}

fn unsupported() -> Problem {
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        "The body must be JSON: send it with `Content-Type: application/json`.",
    )
}

fn too_large() -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "body-too-large",
        "The body must have at most 256 KiB (262144 bytes).",
    )
}

problem_responses! {
    /// `400` for a body.
    InvalidBody = "400" "The body breaks a rule; `errors` names every bad field." [
        invalid("approver", "invalid-email", "Must be an e-mail address such as ada@example.com."),
    ];
    /// `400` for a query.
    InvalidQuery = "400" "A query parameter breaks a rule; `errors` names every bad one." [
        invalid("limit", "out-of-range", "Must be a whole number from 1 to 1000."),
    ];
    /// `400` for a webhook.
    InvalidWebhook = "400" "The body breaks a rule, or the url's host is not allowed." [
        webhooks::refused_address(),
    ];
    /// `401`.
    Unauthorized = "401" "No token (and, where one is taken, no secret), or a token that does not count." [
        auth::token_missing(),
    ];
    /// `403` for the role `any`.
    NotAdmin = "403" "`role=any` is for administrators." [
        tasks::Error::NotAdmin.into(),
    ];
    /// `403` for the audit log.
    AdminsOnly = "403" "The token does not hold the scope `admin`." [
        auth::insufficient_scope(auth::ADMIN_SCOPE),
    ];
    /// `403` for a reader.
    Forbidden = "403" "The caller may read the task, but not do this." [
        tasks::Error::Forbidden.into(),
    ];
    /// `404` for a task.
    NoTask = "404" "There is no such task, or the caller may not know of it." [
        tasks::Error::NotFound.into(),
    ];
    /// `404` for a webhook.
    NoWebhook = "404" "There is no such webhook, or the caller may not know of it." [
        webhooks::Error::NotFound.into(),
    ];
    /// `404` for a delivery.
    NoDelivery = "404" "There is no such delivery, or the caller may not know of it." [
        deliveries::Error::NotFound.into(),
    ];
    /// `409` for a resolved task.
    AlreadyResolved = "409" "The task is resolved already." [
        tasks::Error::AlreadyResolved(TaskStatus::Approved).into(),
    ];
    /// `409` for a webhook.
    NoMoreWebhooks = "409" "The task is resolved already, or has 20 webhooks." [
        tasks::Error::AlreadyResolved(TaskStatus::Approved).into(),
        webhooks::Error::TooMany.into(),
    ];
    /// `413`.
    TooLarge = "413" "The body is larger than 256 KiB." [too_large()];
    /// `415`.
    NotJson = "415" "The body is not sent as JSON." [unsupported()];
    /// `503`.
    Unavailable = "503" "The database is away or busy; try again after `Retry-After`." [
        service_http::database_problem(database::Error::Busy),
    ];
}
