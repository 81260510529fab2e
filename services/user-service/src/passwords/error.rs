use std::time::Duration;

use actix_web::http::StatusCode;
use database::DatabaseProblems;
use http_kit::{BodyProblems, Problem};

use crate::accounts::AccountError;
use crate::back_off::TooManyAttempts;
use crate::hashing::HashError;

/// Why a password was not changed or a code was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PasswordError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("the old password is wrong")]
    WrongPassword,
    #[error(transparent)]
    TooManyAttempts(#[from] TooManyAttempts),
    /// The code is unknown, used or expired. Callers do not learn which.
    #[error("the code is invalid")]
    InvalidCode,
    /// Too many codes were requested. The next request succeeds after this time.
    #[error("too many codes were requested")]
    TooManyRequests(Duration),
    #[error("no channel for codes is configured")]
    NotConfigured,
}

impl From<database::Error> for PasswordError {
    fn from(error: database::Error) -> Self {
        Self::Account(error.into())
    }
}

impl From<HashError> for PasswordError {
    fn from(error: HashError) -> Self {
        Self::Account(error.into())
    }
}

impl From<PasswordError> for Problem {
    fn from(error: PasswordError) -> Self {
        let bad_request = |code, detail| Self::new(StatusCode::BAD_REQUEST, code, detail);
        match error {
            PasswordError::Account(error) => error.into(),
            PasswordError::WrongPassword => bad_request(
                "wrong-password",
                "The field `oldPassword` is not the user's password.",
            ),
            PasswordError::TooManyAttempts(error) => error.into(),
            PasswordError::InvalidCode => bad_request(
                "invalid-code",
                "The code is unknown, was used, or has expired. Request a new one.",
            ),
            PasswordError::TooManyRequests(wait) => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate-limited",
                "Too many codes were requested. The newest codes still work. Request another one \
                 after `Retry-After`.",
            )
            .retry_after(wait),
            PasswordError::NotConfigured => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "forgot-password-not-configured",
                "This system cannot send codes. Ask an administrator for a new password.",
            ),
        }
    }
}

http_kit::problem_responses! {
    pub(crate) ChangePasswordProblems: BodyProblems {
        PasswordError::WrongPassword,
    }
    pub(crate) ForgotPasswordProblems: DatabaseProblems {
        PasswordError::TooManyRequests(Duration::from_secs(60))
            => "Too many codes were requested for this e-mail address or by this client.",
        PasswordError::NotConfigured => "No channel is configured that could carry a code.",
    }
}
