//! The parts of the OpenAPI document that handlers share: the problems that they answer with, and how
//! callers show who they are.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi as Document, Ref, RefOr};
use utoipa::{IntoResponses, Modify, OpenApi};

/// What the document holds before the handlers add their operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "User service",
        description = "User accounts: sign-up, sign-in, administration, passwords and their recovery, deletion."
    ),
    components(schemas(http_kit::ProblemBody)),
    modifiers(&BearerToken),
    tags(
        (name = "users", description = "User accounts."),
        (name = "keys", description = "The keys that verify access tokens.")
    )
)]
pub(crate) struct Base;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("JWT")
            .description(Some("The access token of sign-in or sign-up."))
            .build();
        let components = document.components.get_or_insert_with(Components::new);
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// One problem: status, code, what it means.
type Described = (&'static str, &'static str, &'static str);

fn responses(problems: &[Described]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<&str, Vec<&Described>> = BTreeMap::new();
    for problem in problems {
        by_status.entry(problem.0).or_default().push(problem);
    }
    by_status
        .into_iter()
        .map(|(status, problems)| (status.to_owned(), RefOr::T(response(&problems))))
        .collect()
}

fn response(problems: &[&Described]) -> Response {
    let description: Vec<_> = problems
        .iter()
        .map(|(_, code, meaning)| format!("`{code}`: {meaning}"))
        .collect();
    let examples = problems.iter().map(|(status, code, meaning)| {
        let example = json!({
            "type": format!("urn:countersign:problem:{code}"),
            "status": status.parse::<u16>().unwrap_or_default(),
            "code": code,
            "detail": meaning,
        });
        let example = ExampleBuilder::new().summary(*meaning).value(Some(example));
        (code.to_string(), example.build())
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .examples_from_iter(examples)
        .build();
    ResponseBuilder::new()
        .description(description.join(" "))
        .content("application/problem+json", content)
        .build()
}

/// Makes types that stand for problems in the `responses` of a handler.
macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident { $($status:literal $code:literal $meaning:literal)+ })+) => {$(
        $(#[$doc])*
        pub(crate) enum $name {}

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                responses(&[$(($status, $code, $meaning)),+])
            }
        }
    )+};
}

problems! {
    /// Of operations that need a token.
    TokenProblems {
        "401" "token-missing" "No token came with the call."
        "401" "invalid-token" "The token is malformed or not ours."
        "401" "token-expired" "The token's time is over."
        "401" "token-revoked" "The token was revoked, or its user is gone."
    }
    /// Of operations that need the scope `admin`.
    AdminProblems {
        "401" "token-missing" "No token came with the call."
        "401" "invalid-token" "The token is malformed or not ours."
        "401" "token-expired" "The token's time is over."
        "401" "token-revoked" "The token was revoked, or its user is gone."
        "403" "insufficient-scope" "The token does not hold the scope `admin`."
    }
    /// Of operations with a body.
    BodyProblems {
        "400" "validation-failed" "Fields are missing or wrong; `errors` names each."
        "400" "malformed-json" "The body is not JSON."
        "413" "body-too-large" "The body has more than 256 KiB."
        "415" "unsupported-media-type" "The body's content type is not JSON."
    }
    /// Of operations with parameters in the query.
    QueryProblems {
        "400" "validation-failed" "Parameters are wrong; `errors` names each."
    }
    /// Of operations on one user.
    UserProblems {
        "404" "not-found" "There is no such user."
    }
    /// Of operations that hash passwords.
    HashProblems {
        "503" "overloaded" "Too many passwords are being checked; try again after `Retry-After`."
    }
    /// Of sign-up.
    SignUpProblems {
        "401" "token-missing" "API_USER_CREATE_SCOPE is set and no token came with the call."
        "403" "insufficient-scope" "API_USER_CREATE_SCOPE is set and the token holds none of its scopes."
        "409" "username-taken" "Another user signs in by this username."
        "409" "email-taken" "Another user signs in by this e-mail address."
    }
    /// Of a change of a user.
    UpdateProblems {
        "409" "username-taken" "Another user signs in by this username."
        "409" "email-taken" "Another user signs in by this e-mail address."
        "409" "last-admin" "The last active administrator cannot be demoted or deactivated."
    }
    /// Of sign-in.
    SignInProblems {
        "401" "invalid-credentials" "The username or the password is wrong (403 if SIGN_IN_FAILURE_STATUS says so)."
        "403" "account-inactive" "The password is right, but the account is inactive."
        "429" "too-many-attempts" "Too many failures in a row; try again after `Retry-After`."
    }
    /// Of a change of the own password.
    ChangePasswordProblems {
        "400" "wrong-password" "`oldPassword` is wrong."
        "400" "validation-failed" "Fields are missing or wrong; `errors` names each."
        "400" "malformed-json" "The body is not JSON."
        "413" "body-too-large" "The body has more than 256 KiB."
        "415" "unsupported-media-type" "The body's content type is not JSON."
    }
    /// Of the request for a code.
    ForgotPasswordProblems {
        "429" "rate-limited" "Too many codes for this e-mail address or from this client; try again after `Retry-After`."
        "503" "forgot-password-not-configured" "No channel is configured that could carry a code."
    }
    /// Of setting a password by a code.
    CodeProblems {
        "400" "invalid-code" "The code is unknown, used or expired."
        "400" "validation-failed" "Fields are missing or wrong; `errors` names each."
        "400" "malformed-json" "The body is not JSON."
        "413" "body-too-large" "The body has more than 256 KiB."
        "415" "unsupported-media-type" "The body's content type is not JSON."
    }
    /// Of deleting a user.
    DeleteProblems {
        "404" "not-found" "There is no such user."
        "409" "last-admin" "The last active administrator cannot be deleted."
    }
    /// Of operations on a ticket.
    TicketProblems {
        "404" "not-found" "There is no such ticket of this user."
    }
    /// Of cancelling a deletion.
    CancelProblems {
        "404" "not-found" "There is no such ticket of this user."
        "409" "deletion-ended" "The deletion has ended already."
    }
}
