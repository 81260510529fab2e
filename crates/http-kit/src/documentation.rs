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
}

/// The responses of an operation.
type Responses = BTreeMap<String, RefOr<Response>>;

/// One response for each problem, which [`join_problems`] joins. utoipa keeps only the last response of a status, and an operation
/// may name several groups with a status in common.
pub fn separate_responses(problems: Vec<(Problem, Option<&str>)>) -> Responses {
    let responses = problems.into_iter().map(|(problem, when)| {
        let response = response(&problem, when);
        let status = problem.status_code();
        let key = format!("{} {}", status.as_str(), response.description);
        (key, response.into())
    });
    responses.collect()
}

fn response(problem: &Problem, when: Option<&str>) -> Response {
    let mut body = problem.body();
    let description = format!("`{}`: {}", problem.code(), when.unwrap_or(&body.detail));
    "0b5c1d".clone_into(&mut body.request_id);
    let value = serde_json::to_value(body).unwrap_or_default();
    let example = ExampleBuilder::new().value(Some(value)).build();
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter([(problem.code(), example)])
        .build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .build()
}

/// Makes one response for each status of those that [`separate_responses`] made, with an example for each code.
pub fn join_problems(responses: &mut Responses) {
    for (key, response) in std::mem::take(responses) {
        let status = key.split(' ').next().unwrap_or_default();
        match (responses.get_mut(status), response) {
            (Some(RefOr::T(joined)), RefOr::T(response)) => add(joined, response),
            (_, response) => drop(responses.insert(status.to_owned(), response)),
        }
    }
}

fn add(joined: &mut Response, response: Response) {
    joined.description = format!("{} {}", joined.description, response.description);
    let contents = joined.content.values_mut();
    for contents in contents.zip(response.content.into_values()) {
        if let (RefOr::T(joined), RefOr::T(content)) = contents {
            for (code, example) in content.examples {
                joined.examples.entry(code).or_insert(example);
            }
        }
    }
}

/// Makes types that document problems in the `responses` of an operation.
///
/// Each type lists the problems themselves, or errors that convert to them, so that the examples come from
/// the code that builds the response. `=> "…"` says when a problem occurs, where its `detail` does not.
/// After a colon come the groups that it includes.
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
                $crate::separate_responses(<Self as $crate::ProblemGroup>::problems())
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
    use utoipa::openapi::ResponsesBuilder;

    use crate::{BodyProblems, Problem, join_problems};

    problem_responses! {
        CatProblems: BodyProblems {
            Problem::not_found("cat") => "The cat does not exist.",
            Problem::new(actix_web::http::StatusCode::BAD_REQUEST, "no-cat", "Name a cat."),
        }
        DogProblems: BodyProblems {
            Problem::not_found("dog") => "The dog does not exist.",
            Problem::new(actix_web::http::StatusCode::BAD_REQUEST, "no-dog", "Name a dog."),
        }
    }

    #[test]
    fn groups_have_a_response_for_each_status_and_an_example_for_each_code() {
        let groups = ResponsesBuilder::new()
            .responses_from_into_responses::<CatProblems>()
            .responses_from_into_responses::<DogProblems>();
        let mut responses = groups.build().responses;
        join_problems(&mut responses);
        let responses = json!(responses);
        let statuses: Vec<_> = responses.as_object().unwrap().keys().collect();
        assert_eq!(statuses, ["400", "404", "413", "415"]);
        let not_found = &responses["404"];
        assert_eq!(
            not_found["description"],
            "`not-found`: The cat does not exist. `not-found`: The dog does not exist."
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
                "no-dog",
                "validation-failed"
            ]
        );
    }
}
