//! Responses about accounts. None has a field for a password or a hash.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{Secret, UserId};

use super::requests::Vendor;
use super::store::User;

/// A token and its user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignInResponse {
    /// The access token. Send it as `Authorization: Bearer <token>`.
    #[schema(example = "eyJhbGciOiJFZERTQSIsImtpZCI6Ii4uLiJ9.e30.c2ln")]
    token: String,
    user: SignInResponseUser,
}

/// The user in the responses of sign-in and sign-up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignInResponseUser {
    #[schema(inline)]
    id: UserId,
    #[schema(example = "ada@example.com")]
    username: String,
    is_active: bool,
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(example = "free")]
    plan: String,
    #[schema(value_type = Option<Vendor>, inline)]
    vendor: Option<Value>,
    #[schema(example = json!(["user"]))]
    scope: Vec<String>,
    /// True for a service account, else absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    service: bool,
}

impl SignInResponse {
    pub(crate) fn new(user: User, token: &Secret) -> Self {
        Self {
            token: token.expose().to_owned(),
            user: user.into(),
        }
    }
}

impl From<User> for SignInResponseUser {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            username: user.username.as_str().to_owned(),
            is_active: user.is_active,
            email: user.email.as_str().to_owned(),
            plan: user.plan,
            vendor: user.vendor,
            scope: user.scope,
            service: user.is_service,
        }
    }
}

/// A user that was created: signed in, or alone if it is a service account or an API key created it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum CreatedResponse {
    SignedIn(SignInResponse),
    Created(CreatedUser),
}

/// A user who is not signed in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatedUser {
    pub(super) user: SignInResponseUser,
}

/// A user's own account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CurrentUserResponse {
    #[schema(inline)]
    id: UserId,
    #[schema(example = "ada@example.com")]
    username: String,
    is_active: bool,
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(example = json!(["user"]))]
    scope: Vec<String>,
    #[schema(example = "free")]
    plan: String,
}

impl From<User> for CurrentUserResponse {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            username: user.username.as_str().to_owned(),
            is_active: user.is_active,
            email: user.email.as_str().to_owned(),
            scope: user.scope,
            plan: user.plan,
        }
    }
}

/// An empty object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmptyResponse {}
