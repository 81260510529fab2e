use std::time::Duration;

use actix_web::http::StatusCode;
use diesel::result::Error as DieselError;
use http_kit::Problem;
use service_http::database_problem;

use crate::hashing::HashError;

/// Why a password was not changed or a code not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum PasswordError {
    /// The user of the token is gone, or the token was revoked meanwhile.
    #[error("the token no longer counts")]
    CallerGone,
    /// The old password is wrong.
    #[error("the old password is wrong")]
    WrongPassword,
    /// No user has this e-mail address.
    #[error("no user has this e-mail address")]
    UnknownEmail,
    /// The code is unknown, used or expired: which of them, nobody learns.
    #[error("the code is not valid")]
    InvalidCode,
    /// Too many codes were asked for; one more may be after this time.
    #[error("too many codes were asked for")]
    TooManyRequests(Duration),
    /// There is no channel for codes.
    #[error("no channel for codes is configured")]
    NotConfigured,
    /// The password was not hashed.
    #[error(transparent)]
    Hash(#[from] HashError),
    /// The token was not signed.
    #[error(transparent)]
    Sign(#[from] auth::SignError),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<DieselError> for PasswordError {
    fn from(error: DieselError) -> Self {
        Self::Database(error.into())
    }
}

impl From<PasswordError> for Problem {
    fn from(error: PasswordError) -> Self {
        let bad_request = |code, detail| Self::new(StatusCode::BAD_REQUEST, code, detail);
        match error {
            PasswordError::CallerGone => auth::token_revoked(),
            PasswordError::WrongPassword => bad_request(
                "wrong-password",
                "The field `oldPassword` is not the user's password.",
            ),
            PasswordError::UnknownEmail => Self::not_found("user"),
            PasswordError::InvalidCode => bad_request(
                "invalid-code",
                "The code is unknown, was used, or has expired. Ask for a new one.",
            ),
            PasswordError::TooManyRequests(wait) => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate-limited",
                "Too many codes were asked for. The newest one that arrived still works; for \
                     another one wait as long as `Retry-After` says.",
            )
            .retry_after(wait),
            PasswordError::NotConfigured => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "forgot-password-not-configured",
                "This system has no way to send a code. Ask an administrator for a new password.",
            ),
            PasswordError::Hash(error) => error.into(),
            PasswordError::Sign(_) => Self::internal(&error),
            PasswordError::Database(error) => database_problem(error),
        }
    }
}
