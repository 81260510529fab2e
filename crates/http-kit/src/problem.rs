use std::borrow::Cow;
use std::error::Error as StdError;
use std::iter::successors;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use telemetry::RequestContext;
use utoipa::ToSchema;
use values::Invalid;

/// The maximum number of entries of `errors`, so that a short request cannot cause a long response.
const MAX_LISTED_ERRORS: usize = 20;

/// An error response (RFC 9457).
///
/// Clients check its `code`. The cause of an internal error is only logged: [`Problem::internal`] logs the whole
/// chain of causes once and returns an opaque `500`.
#[derive(Debug, thiserror::Error)]
#[error("{} {code}", .status.as_u16())]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: Cow<'static, str>,
    /// All invalid fields, also those that the body does not list.
    pub(crate) errors: Vec<FieldError>,
    extensions: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// An invalid field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// The field's name in the body, the query or the path.
    #[schema(example = "email")]
    pub field: String,
    /// A stable code in kebab case.
    #[schema(example = "invalid-email")]
    pub code: String,
    /// What is expected.
    #[schema(example = "Must be an e-mail address such as ada@example.com.")]
    pub message: String,
}

impl FieldError {
    /// Creates the error of a field.
    pub fn new(field: impl Into<String>, invalid: Invalid) -> Self {
        Self {
            field: field.into(),
            code: invalid.code.to_owned(),
            message: invalid.message.into_owned(),
        }
    }
}

/// The body of a problem, `application/problem+json`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// `urn:countersign:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:countersign:problem:validation-failed")]
    pub kind: String,
    /// The code in words.
    #[schema(example = "Validation failed")]
    pub title: String,
    /// The response's status.
    #[schema(example = 400)]
    pub status: u16,
    /// What is wrong, what is expected, and what to do.
    pub detail: String,
    /// A stable code in kebab case. Programs should check only this field.
    #[schema(example = "validation-failed")]
    pub code: String,
    /// The same text as `detail`.
    pub message: String,
    /// The same number as `status`.
    pub status_code: u16,
    /// The status's reason phrase.
    #[schema(example = "Bad Request")]
    pub error: String,
    /// The response's `X-Request-Id`.
    pub request_id: String,
    /// One entry for each invalid field, at most 20, if the code is `validation-failed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
    /// Further members of some codes, such as `taskStatus`.
    #[serde(flatten)]
    #[schema(ignore)]
    pub extensions: Map<String, Value>,
}

impl Problem {
    /// Creates a problem with a stable code and a sentence for people.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            errors: Vec::new(),
            extensions: Map::new(),
            headers: Vec::new(),
        }
    }

    /// `400 validation-failed` with one entry for each invalid field, up to 20.
    pub fn validation(errors: Vec<FieldError>) -> Self {
        let listed = errors.iter().take(MAX_LISTED_ERRORS);
        let mut fields: Vec<_> = listed.map(|error| error.field.as_str()).collect();
        fields.dedup();
        let fields = fields.join(", ");
        let detail = match errors.len() {
            ..=MAX_LISTED_ERRORS => format!("Invalid: {fields}. See `errors`."),
            all => {
                format!("Invalid: {fields}. See `errors`, the first {MAX_LISTED_ERRORS} of {all}.")
            }
        };
        let mut problem = Self::new(StatusCode::BAD_REQUEST, "validation-failed", detail);
        problem.errors = errors;
        problem
    }

    /// `400 validation-failed` with one invalid field.
    pub fn invalid_field(field: impl Into<String>, invalid: Invalid) -> Self {
        Self::validation(vec![FieldError::new(field, invalid)])
    }

    /// `404 not-found` for something that does not exist or is not visible to the caller.
    pub fn not_found(what: &'static str) -> Self {
        let detail = format!("There is no such {what}.");
        Self::new(StatusCode::NOT_FOUND, "not-found", detail)
    }

    /// `403 forbidden`.
    pub fn forbidden(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    /// `503` with `Retry-After`: the process is overloaded, or a dependency is unavailable.
    pub fn unavailable(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::unavailable_for(code, detail, Duration::from_secs(1))
    }

    /// `503` with this `Retry-After`.
    pub fn unavailable_for(
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
        wait: Duration,
    ) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(wait)
    }

    /// An opaque `500`. Logs the error and its causes, once.
    pub fn internal(error: &(dyn StdError + 'static)) -> Self {
        let causes = successors(Some(error), |&cause| cause.source()).map(ToString::to_string);
        let error = causes.collect::<Vec<_>>().join(": ");
        tracing::error!(error, "internal error");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal-error",
            "An internal error occurred. Try again, and report the request id if it happens again.",
        )
    }

    /// Adds an extension member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extensions.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a response header, if the value is one that a header can have.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        let header = value.try_into().map(|value| (name, value));
        self.headers.extend(header);
        self
    }

    /// Adds `Retry-After`, in [`whole_seconds`].
    #[must_use]
    pub fn retry_after(self, wait: Duration) -> Self {
        self.header(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)))
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The body of this problem for the current request.
    pub fn body(&self) -> ProblemBody {
        let request_id = RequestContext::current().map_or_else(String::new, |c| c.request_id);
        let reason = self.status.canonical_reason();
        let errors = self.errors.iter().take(MAX_LISTED_ERRORS);
        ProblemBody {
            kind: format!("urn:countersign:problem:{}", self.code),
            title: title_of(self.code),
            status: self.status.as_u16(),
            detail: self.detail.clone().into_owned(),
            code: self.code.to_owned(),
            message: self.detail.clone().into_owned(),
            status_code: self.status.as_u16(),
            error: reason.unwrap_or_default().to_owned(),
            request_id,
            errors: errors.cloned().collect(),
            extensions: self.extensions.clone(),
        }
    }
}

/// `email-taken` becomes `Email taken`.
fn title_of(code: &str) -> String {
    let mut words = code.replace('-', " ");
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    words
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status);
        response.content_type("application/problem+json");
        for (name, value) in &self.headers {
            response.append_header((name.clone(), value.clone()));
        }
        match serde_json::to_vec(&self.body()) {
            Ok(body) => response.body(body),
            Err(_) => response.finish(),
        }
    }
}

/// A duration in seconds, rounded up and at least one, so that a client that waits this long is not refused again.
pub fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use actix_web::http::Method;
    use values::Invalid;

    use super::{FieldError, Problem};
    use crate::{Routes, body_too_large, combine_errors};

    #[test]
    fn problem_bodies() {
        let email = Invalid::new("invalid-email", "Must be an e-mail address.");
        let password = Invalid::new("too-short", "Must have at least 8 characters.");
        let errors = vec![
            FieldError::new("email", email),
            FieldError::new("password", password),
        ];
        let routes = Routes::default().and("/users", Method::GET);
        let problems = [
            Problem::validation(errors),
            Problem::not_found("user"),
            routes.check(&Method::GET, "/unknown").unwrap_err(),
            routes.check(&Method::PUT, "/users").unwrap_err(),
            body_too_large(),
            Problem::internal(&std::fmt::Error),
        ];
        insta::assert_json_snapshot!(problems.map(|problem| problem.body()));
    }

    #[test]
    fn a_problem_lists_at_most_twenty_errors_and_says_how_many_there_are() {
        let error = FieldError::new("filter", Invalid::new("unknown-field", "x".repeat(100)));
        let (first, second) = (vec![error.clone(); 2], vec![error; 1_000]);
        let both = combine_errors::<(), ()>(
            Err(Problem::validation(first)),
            Err(Problem::validation(second)),
        );
        let body = both.unwrap_err().body();
        assert_eq!(body.errors.len(), 20);
        let expected = "Invalid: filter. See `errors`, the first 20 of 1002.";
        assert_eq!(body.detail, expected);
    }
}
