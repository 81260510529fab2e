use std::time::Duration;

use actix_web::http::StatusCode;
use auth::TokenProblems;
use database::{DatabaseProblems, database_problem};
use http_kit::Problem;

use crate::accounts::{AccountError, CodeProblems, DeletionProblems};
use crate::back_off::{BackOffProblems, TooManyAttempts};
use crate::hashing::HashProblems;
use crate::passwords::PasswordError;

/// Why an address was not confirmed or a code was not sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum VerificationError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("the code is of another account")]
    OtherAccount,
    #[error("the password is wrong")]
    WrongPassword,
    #[error(transparent)]
    TooManyAttempts(#[from] TooManyAttempts),
    #[error(transparent)]
    NewPassword(#[from] PasswordError),
    #[error("the address is confirmed")]
    AlreadyConfirmed,
    /// Too many codes were requested. The next request succeeds after this time.
    #[error("too many codes were requested")]
    TooManyRequests(Duration),
    #[error("no channel for codes is configured")]
    NotConfigured,
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<VerificationError> for Problem {
    fn from(error: VerificationError) -> Self {
        match error {
            VerificationError::Account(error) => error.into(),
            VerificationError::OtherAccount => Self::new(
                StatusCode::FORBIDDEN,
                "code-of-another-account",
                "The code is of another account than the token. Confirm the address with that account's token or \
                 password, or with a new password.",
            ),
            VerificationError::WrongPassword => Self::new(
                StatusCode::BAD_REQUEST,
                "wrong-password",
                "The field `password` is not the account's password.",
            ),
            VerificationError::TooManyAttempts(error) => error.into(),
            VerificationError::NewPassword(error) => error.into(),
            VerificationError::AlreadyConfirmed => Self::new(
                StatusCode::CONFLICT,
                "email-already-confirmed",
                "The e-mail address is confirmed. Sign in again to get a token that says so.",
            ),
            VerificationError::TooManyRequests(wait) => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate-limited",
                "Too many codes were requested. Codes that were sent before stay valid until they expire. Request \
                 another one after `Retry-After`.",
            )
            .retry_after(wait),
            VerificationError::NotConfigured => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "verification-not-configured",
                "This system cannot send codes.",
            ),
            VerificationError::Database(error) => database_problem(error),
        }
    }
}

http_kit::problem_responses! {
    pub(crate) ConfirmProblems: CodeProblems, TokenProblems, DeletionProblems, BackOffProblems, HashProblems {
        VerificationError::WrongPassword,
        VerificationError::OtherAccount => "The token is of another account than the code, which stays valid.",
    }
    pub(crate) ResendProblems: DatabaseProblems {
        VerificationError::AlreadyConfirmed,
        VerificationError::TooManyRequests(Duration::from_secs(60))
            => "Too many codes were requested for this e-mail address or by this client.",
        VerificationError::NotConfigured => "No channel is configured that could carry a code.",
    }
}
