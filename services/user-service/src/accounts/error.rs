use actix_web::http::StatusCode;
use auth::TokenProblems;
use database::database_problem;
use http_kit::{BodyProblems, Problem};
use values::Invalid;

use super::list_query::{MAX_OFFSET_WITH_PATTERN, MAX_SORTED_USERS};
use crate::hashing::HashError;

/// Why an account was not created, read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error("the user does not exist")]
    NotFound,
    #[error("the token's user was deleted")]
    CallerGone,
    /// The username is another user's username or e-mail address.
    #[error("the username is taken")]
    UsernameTaken,
    /// The e-mail address is another user's e-mail address or username.
    #[error("the e-mail address is taken")]
    EmailTaken,
    #[error("the user is the last active administrator")]
    LastAdmin,
    #[error("a deletion of the user is in progress")]
    DeletionInProgress,
    /// The code is unknown, used or expired, or was sent to another address.
    #[error("the code is invalid")]
    InvalidCode,
    #[error("a service account has no password")]
    ServicePassword,
    #[error("an API key cannot do that")]
    KeyNotAccepted,
    #[error("the offset is too high")]
    OffsetTooHigh,
    #[error(transparent)]
    Hash(#[from] HashError),
    #[error(transparent)]
    Sign(#[from] auth::SignError),
    #[error(transparent)]
    Database(database::Error),
}

impl From<database::Error> for AccountError {
    fn from(error: database::Error) -> Self {
        match error.violated_constraint() {
            Some("users_username_taken") => Self::UsernameTaken,
            Some("users_email_taken") => Self::EmailTaken,
            Some("users_deletion_in_progress") => Self::DeletionInProgress,
            _ => Self::Database(error),
        }
    }
}

impl From<AccountError> for Problem {
    fn from(error: AccountError) -> Self {
        let conflict = |code, detail| Self::new(StatusCode::CONFLICT, code, detail);
        match error {
            AccountError::NotFound => Self::not_found("user"),
            AccountError::CallerGone => auth::token_revoked(),
            AccountError::UsernameTaken => conflict(
                "username-taken",
                "Another user already has this username. Choose another one.",
            ),
            AccountError::EmailTaken => conflict(
                "email-taken",
                "Another user already has this e-mail address. Choose another one.",
            ),
            AccountError::LastAdmin => conflict(
                "last-admin",
                "This is the last active administrator. Appoint another one first.",
            ),
            AccountError::DeletionInProgress => conflict(
                "deletion-in-progress",
                "A deletion of this user is in progress, so the user cannot be changed. \
                 `DELETE /users/{userId}` returns its ticket again, by which it can be cancelled.",
            ),
            AccountError::InvalidCode => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid-code",
                "The code is unknown, was used, or has expired.",
            ),
            AccountError::ServicePassword => Self::invalid_field("password", service_password()),
            AccountError::KeyNotAccepted => auth::key_not_accepted(),
            AccountError::OffsetTooHigh => {
                let message = format!(
                    "Must be at most {MAX_OFFSET_WITH_PATTERN} in a list with a pattern, because there are more than \
                     {MAX_SORTED_USERS} users. Sort the list by username, or use a longer pattern."
                );
                Self::invalid_field("offset", Invalid::new("out-of-range", message))
            }
            AccountError::Hash(error) => error.into(),
            AccountError::Sign(_) => Self::internal(&error),
            AccountError::Database(error) => database_problem(error),
        }
    }
}

/// Why a service account gets no password.
pub(super) fn service_password() -> Invalid {
    let message = "Must be absent: a service account has no password, but API keys.";
    Invalid::new("not-for-service-accounts", message)
}

http_kit::problem_responses! {
    pub(crate) UserProblems {
        AccountError::NotFound,
    }
    pub(crate) SignUpProblems: TokenProblems {
        auth::insufficient_scope("admin")
            => "API_USER_CREATE_SCOPE is set and the token has none of its scopes.",
        AccountError::UsernameTaken,
        AccountError::EmailTaken,
    }
    pub(crate) UpdateProblems: DeletionProblems {
        AccountError::UsernameTaken,
        AccountError::EmailTaken,
        AccountError::LastAdmin => "The last active administrator cannot be demoted or deactivated.",
    }
    /// Problems of any change of a user who may be in the course of being deleted.
    pub(crate) DeletionProblems {
        AccountError::DeletionInProgress,
    }
    pub(crate) CodeProblems: BodyProblems {
        AccountError::InvalidCode,
    }
}
