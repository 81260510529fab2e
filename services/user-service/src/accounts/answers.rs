//! What callers see of an account. No answer has a place for a password or a hash.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use values::{Secret, Timestamp, UserId};

use super::user::User;

/// A token, and the user that it speaks for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignedIn {
    /// The access token, to be sent as `Authorization: Bearer <token>`.
    #[schema(example = "eyJhbGciOiJFZERTQSIsImtpZCI6Ii4uLiJ9.e30.c2ln")]
    token: String,
    user: SignedInUser,
}

/// The user in the answers of sign-in and sign-up.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignedInUser {
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
    id: UserId,
    #[schema(example = "ada@example.com")]
    username: String,
    is_active: bool,
    #[schema(example = "ada@example.com")]
    email: String,
    #[schema(example = "free")]
    plan: String,
    /// Null, a string or an array of strings.
    vendor: Option<Value>,
    #[schema(example = json!(["user"]))]
    scope: Vec<String>,
}

impl SignedIn {
    pub(crate) fn new(user: User, token: &Secret) -> Self {
        Self {
            token: token.expose().to_owned(),
            user: SignedInUser {
                id: user.id,
                username: user.username.as_str().to_owned(),
                is_active: user.is_active,
                email: user.email.as_str().to_owned(),
                plan: user.plan,
                vendor: user.vendor,
                scope: user.scope,
            },
        }
    }
}

/// What a user sees of itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CurrentUser {
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
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

impl From<User> for CurrentUser {
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

/// What an administrator sees of a user.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = User)]
pub(crate) struct FullUser {
    #[schema(value_type = String, example = "65b8f0a2c3d4e5f601234567")]
    id: UserId,
    #[schema(example = "ada@example.com")]
    username: String,
    #[schema(example = "ada@example.com")]
    email: String,
    /// An inactive user cannot sign in.
    is_active: bool,
    #[schema(example = "free")]
    plan: String,
    #[schema(example = json!(["user"]))]
    scope: Vec<String>,
    /// Null, a string or an array of strings.
    vendor: Option<Value>,
    /// Component types that the user may use.
    allowed_private_components: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    created: Timestamp,
    /// When the account was last changed.
    #[schema(value_type = String, format = DateTime)]
    mtime: Timestamp,
    /// Null before the first sign-in.
    #[schema(value_type = Option<String>, format = DateTime)]
    last_sign_in: Option<Timestamp>,
    /// An object that clients keep with the account.
    #[schema(value_type = Object)]
    metadata: Value,
}

impl From<User> for FullUser {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            username: user.username.as_str().to_owned(),
            email: user.email.as_str().to_owned(),
            is_active: user.is_active,
            plan: user.plan,
            scope: user.scope,
            vendor: user.vendor,
            allowed_private_components: user.allowed_private_components,
            created: user.created.into(),
            mtime: user.mtime.into(),
            last_sign_in: user.last_sign_in.map(Timestamp::from),
            metadata: user.metadata,
        }
    }
}

/// A number of users.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserCount)]
pub(crate) struct Count {
    #[schema(example = 42)]
    pub(crate) count: i64,
}

/// An empty object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Empty {}
