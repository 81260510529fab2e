//! The bodies of sign-in, as the OpenAPI document describes them. They are read field by field, so these
//! types exist for the document alone.

use std::borrow::Cow;

use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The body of sign-in with a username.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct SignInByUsername {
    /// The username or the e-mail address.
    #[schema(example = "ada@example.com")]
    username: String,
    /// Is not looked at.
    #[schema(example = "ada@example.com")]
    email: Option<String>,
    #[schema(format = "password", example = "correct horse")]
    password: String,
}

/// The body of sign-in with an e-mail address.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct SignInByEmail {
    /// The username or the e-mail address.
    #[schema(example = "ada@example.com")]
    username: Option<String>,
    /// Stands in place of `username` when that is not given.
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(format = "password", example = "correct horse")]
    password: String,
}

/// The body of sign-in. One of `username` and `email` is needed.
pub(super) struct SignInBody;

impl PartialSchema for SignInBody {
    fn schema() -> RefOr<Schema> {
        let either = AnyOfBuilder::new()
            .description(Some("One of `username` and `email` is needed."))
            .item(SignInByUsername::schema())
            .item(SignInByEmail::schema());
        either.into()
    }
}

impl ToSchema for SignInBody {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("SignInBody")
    }
}
