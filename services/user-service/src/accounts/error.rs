use actix_web::http::StatusCode;
use diesel::result::Error as DieselError;
use http_kit::Problem;
use service_http::database_problem;

use crate::hashing::HashError;

/// Why an account was not made, read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    /// There is no such user.
    #[error("there is no such user")]
    NotFound,
    /// The user of the token is gone.
    #[error("the token's user is gone")]
    CallerGone,
    /// The username is another user's username or e-mail address.
    #[error("the username is taken")]
    UsernameTaken,
    /// The e-mail address is another user's e-mail address or username.
    #[error("the e-mail address is taken")]
    EmailTaken,
    /// Nobody could administer the system any more.
    #[error("it is the last active administrator")]
    LastAdmin,
    /// The code is unknown, used or expired, or was sent to another address.
    #[error("the code is not valid")]
    InvalidCode,
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

impl From<DieselError> for AccountError {
    fn from(error: DieselError) -> Self {
        match database::violated_constraint(&error) {
            Some("users_username_taken") => Self::UsernameTaken,
            Some("users_email_taken") => Self::EmailTaken,
            _ => Self::Database(error.into()),
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
                "Another user signs in by this username. Choose another one.",
            ),
            AccountError::EmailTaken => conflict(
                "email-taken",
                "Another user signs in by this e-mail address. Choose another one.",
            ),
            AccountError::LastAdmin => conflict(
                "last-admin",
                "This is the last active administrator. Make another one first.",
            ),
            AccountError::InvalidCode => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid-code",
                "The code is unknown, was used, or has expired.",
            ),
            AccountError::Hash(error) => error.into(),
            AccountError::Sign(_) => Self::internal(&error),
            AccountError::Database(error) => database_problem(error),
        }
    }
}
