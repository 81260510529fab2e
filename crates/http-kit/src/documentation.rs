//! Problems in OpenAPI documents: see [`problem_responses!`](crate::problem_responses).

use std::collections::BTreeMap;

use actix_web::ResponseError as _;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use values::Invalid;

use crate::Problem;
use crate::body::{body_too_large, incomplete_body, malformed_json, unsupported_media_type};

/// Problems that operations share. [`problem_responses!`](crate::problem_responses) implements it.
pub trait ProblemGroup {
    /// The problems of the group, then those of the groups that it includes; and when each occurs, where its own `detail`
    /// does not say it.
    fn problems() -> Vec<(Problem, Option<&'static str>)>;

    /// One response for each status, with an example for each code.
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut by_status: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (problem, when) in Self::problems() {
            let status = problem.status_code().as_str().to_owned();
            by_status.entry(status).or_default().push((problem, when));
        }
        let responses = by_status.into_iter();
        responses
            .map(|(status, problems)| (status, response(&problems).into()))
            .collect()
    }
}

fn response(problems: &[(Problem, Option<&str>)]) -> Response {
    let mut descriptions = Vec::new();
    let mut examples = BTreeMap::new();
    for (problem, when) in problems {
        let mut body = problem.body();
        let when = when.unwrap_or(&body.detail);
        descriptions.push(format!("`{}`: {when}", problem.code()));
        "0b5c1d".clone_into(&mut body.request_id);
        let value = serde_json::to_value(body).unwrap_or_default();
        examples.entry(problem.code()).or_insert(value);
    }
    let examples = examples.into_iter().map(|(code, value)| {
        let example = ExampleBuilder::new().value(Some(value)).build();
        (code.to_owned(), example)
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build();
    ResponseBuilder::new()
        .description(descriptions.join(" "))
        .content("application/problem+json", content)
        .build()
}

/// Makes types that document problems in the `responses` of an operation.
///
/// Each type lists the problems themselves, or errors that convert to them, so that the examples come from
/// the code that builds the response. `=> "…"` says when a problem occurs, where its `detail` does not.
/// After a colon come the groups that it includes; utoipa keeps only the last response of a status, so
/// groups with a status in common must be combined this way.
///
/// ```
/// http_kit::problem_responses! {
///     /// Problems of operations that find a cat and change it.
///     CatProblems: http_kit::BodyProblems {
///         http_kit::Problem::not_found("cat"),
///         http_kit::Problem::forbidden("This cat is not yours.") => "The cat belongs to another user.",
///     }
/// }
/// ```
#[macro_export]
macro_rules! problem_responses {
    ($(
        $(#[$doc:meta])*
        $visibility:vis $name:ident $(: $($group:ty),+)? {
            $($problem:expr $(=> $when:literal)?),* $(,)?
        }
    )+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        $visibility enum $name {}

        impl $crate::ProblemGroup for $name {
            fn problems() -> Vec<($crate::Problem, Option<&'static str>)> {
                let own = vec![$(($crate::Problem::from($problem), None$(.or(Some($when)))?)),*];
                let groups = [own, $($(<$group as $crate::ProblemGroup>::problems()),+)?];
                groups.into_iter().flatten().collect()
            }
        }

        impl $crate::utoipa::IntoResponses for $name {
            fn responses() -> std::collections::BTreeMap<
                String,
                $crate::utoipa::openapi::RefOr<$crate::utoipa::openapi::Response>,
            > {
                <Self as $crate::ProblemGroup>::responses()
            }
        }
    )+};
}

/// Describes types with a schema in OpenAPI, for what a derive cannot say.
#[macro_export]
macro_rules! schemas {
    ($($type:ty = $schema:expr;)+) => {$(
        impl $crate::utoipa::PartialSchema for $type {
            fn schema() -> $crate::utoipa::openapi::RefOr<$crate::utoipa::openapi::Schema> {
                $schema.into()
            }
        }

        impl $crate::utoipa::ToSchema for $type {}
    )+};
}

problem_responses! {
    /// Problems of operations with a body.
    pub BodyProblems {
        Problem::invalid_field(
            "email",
            Invalid::new("invalid-email", "Must be an e-mail address such as ada@example.com."),
        ) => "Fields are missing or invalid; `errors` lists each.",
        malformed_json(1, 2) => "The body is not JSON.",
        incomplete_body(),
        body_too_large(),
        unsupported_media_type(),
    }
    /// Problems of operations with query parameters.
    pub QueryProblems {
        Problem::invalid_field(
            "limit",
            Invalid::new("out-of-range", "Must be a whole number from 1 to 1000."),
        ) => "Query parameters are invalid; `errors` lists each.",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::IntoResponses as _;

    use crate::{BodyProblems, Problem};

    problem_responses! {
        CatProblems: BodyProblems {
            Problem::not_found("cat") => "The cat does not exist.",
            Problem::new(actix_web::http::StatusCode::BAD_REQUEST, "no-cat", "Name a cat."),
        }
    }

    #[test]
    fn a_group_has_a_response_for_each_status_and_an_example_for_each_code() {
        let responses = json!(CatProblems::responses());
        let statuses: Vec<_> = responses.as_object().unwrap().keys().collect();
        assert_eq!(statuses, ["400", "404", "413", "415"]);
        let not_found = &responses["404"];
        assert_eq!(
            not_found["description"],
            "`not-found`: The cat does not exist."
        );
        let content = &not_found["content"]["application/problem+json"];
        let example = &content["examples"]["not-found"]["value"];
        assert_eq!(example["detail"], "There is no such cat.");
        let content = &responses["400"]["content"]["application/problem+json"];
        let codes: Vec<_> = content["examples"].as_object().unwrap().keys().collect();
        assert_eq!(
            codes,
            [
                "incomplete-body",
                "malformed-json",
                "no-cat",
                "validation-failed"
            ]
        );
    }
}
