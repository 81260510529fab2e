//! Why requests are refused or fail, and the problems that their callers get.

use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{BodyProblems, Problem};
use values::Invalid;

use crate::hashing::HashError;

/// When the gateway asks again about a key that is off: an administrator may have confirmed it by then.
const KEY_OFF_FOR: Duration = Duration::from_secs(5);

/// Why a request was refused or failed. The text of a refusal is the `detail` of its problem.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserError {
    #[error("There is no such {0}.")]
    NotFound(&'static str),
    /// The token's user was changed or deleted since.
    #[error("The token was revoked.")]
    CallerGone,
    #[error("An API key cannot do that.")]
    KeyNotAccepted,
    #[error("The API key is unknown or has ended.")]
    InvalidKey,
    /// It is off since a restore, until an administrator confirms it.
    #[error("The API key is unknown or has ended.")]
    KeyOff,
    /// A field is valid by itself, but not for this user or list.
    #[error("The field `{0}` is invalid.")]
    InvalidField(&'static str, Invalid),
    #[error("Another user already has this username. Choose another one.")]
    UsernameTaken,
    #[error("Another user already has this e-mail address. Choose another one.")]
    EmailTaken,
    #[error("This is the last active administrator. Appoint another one first.")]
    LastAdmin,
    #[error(
        "A deletion of this user is in progress, so the user cannot be changed. \
         `DELETE /users/{{userId}}` returns its ticket again, by which it can be cancelled."
    )]
    DeletionInProgress,
    #[error("The deletion has already ended.")]
    DeletionEnded,
    #[error("The user is inactive or is being deleted. Keys are for active users.")]
    KeysOfInactiveUser,
    #[error("A user has at most {0} keys. End one that is no longer needed first.")]
    TooManyKeys(usize),
    /// The user does not exist or the password is wrong. Callers do not learn which. The status is `401`, or `403` for
    /// clients of Appmixer.
    #[error("The username or the password is wrong.")]
    WrongCredentials(StatusCode),
    #[error("The account is inactive. Ask an administrator.")]
    AccountInactive,
    #[error("The field `oldPassword` is not the user's password.")]
    WrongOldPassword,
    #[error("The field `password` is not the account's password.")]
    WrongPassword,
    /// There were too many failures in a row. The next attempt succeeds after this time.
    #[error(
        "Too many failed attempts in a row. Wait as long as `Retry-After` says, then try again."
    )]
    TooManyAttempts(Duration),
    /// The code is unknown, used or expired, or was sent to another address. Callers do not learn which.
    #[error("The code is unknown, was used, or has expired.")]
    InvalidCode,
    #[error("The code is unknown, was used, or has expired. Request a new one.")]
    InvalidResetCode,
    #[error(
        "The code is of another account than the token. Confirm the address with that account's token or password, or \
         with a new password."
    )]
    OtherAccount,
    #[error("The e-mail address is confirmed. Sign in again to get a token that says so.")]
    EmailConfirmed,
    /// The next request for a code succeeds after this time.
    #[error(
        "Too many codes were requested. Codes that were sent before stay valid until they expire. Request another one \
         after `Retry-After`."
    )]
    TooManyCodes(Duration),
    #[error(
        "Too many codes were requested. The newest codes still work. Request another one after `Retry-After`."
    )]
    TooManyResetCodes(Duration),
    #[error(
        "Too many mails about keys were caused by you or from your network. Make the key after `Retry-After`."
    )]
    TooManyKeyMails(Duration),
    #[error("This system cannot send codes.")]
    CannotSendCodes,
    #[error("This system cannot send codes. Ask an administrator for a new password.")]
    CannotSendResetCodes,
    #[error("The session has ended, or there is none. Sign in again.")]
    SessionEnded,
    #[error(
        "Another request of this browser exchanged the session at the same time. Repeat the request."
    )]
    SessionBusy,
    #[error(transparent)]
    Hash(#[from] HashError),
    #[error(transparent)]
    Database(database::Error),
}

impl From<database::Error> for UserError {
    fn from(error: database::Error) -> Self {
        match error.violated_constraint() {
            Some("users_username_taken") => Self::UsernameTaken,
            Some("users_email_taken") => Self::EmailTaken,
            Some("users_deletion_in_progress") => Self::DeletionInProgress,
            _ => Self::Database(error),
        }
    }
}

impl From<UserError> for Problem {
    fn from(error: UserError) -> Self {
        let refused = |status, code| Self::new(status, code, error.to_string());
        let bad_request = |code| refused(StatusCode::BAD_REQUEST, code);
        let unauthorized = |code| auth::challenge(refused(StatusCode::UNAUTHORIZED, code), "");
        let forbidden = |code| refused(StatusCode::FORBIDDEN, code);
        let conflict = |code| refused(StatusCode::CONFLICT, code);
        let limited = |code, wait| refused(StatusCode::TOO_MANY_REQUESTS, code).retry_after(wait);
        let unavailable = |code| refused(StatusCode::SERVICE_UNAVAILABLE, code);
        match error {
            UserError::NotFound(what) => Self::not_found(what),
            UserError::CallerGone => auth::token_revoked(),
            UserError::KeyNotAccepted => auth::key_not_accepted(),
            UserError::InvalidKey => auth::invalid_key(),
            UserError::KeyOff => auth::invalid_key().retry_after(KEY_OFF_FOR),
            UserError::InvalidField(field, invalid) => Self::invalid_field(field, invalid),
            UserError::UsernameTaken => conflict("username-taken"),
            UserError::EmailTaken => conflict("email-taken"),
            UserError::LastAdmin => conflict("last-admin"),
            UserError::DeletionInProgress => conflict("deletion-in-progress"),
            UserError::DeletionEnded => conflict("deletion-ended"),
            UserError::KeysOfInactiveUser => conflict("user-inactive"),
            UserError::TooManyKeys(_) => conflict("too-many-keys"),
            UserError::WrongCredentials(StatusCode::FORBIDDEN) => forbidden("invalid-credentials"),
            UserError::WrongCredentials(_) => unauthorized("invalid-credentials"),
            UserError::AccountInactive => forbidden("account-inactive"),
            UserError::WrongOldPassword | UserError::WrongPassword => bad_request("wrong-password"),
            UserError::TooManyAttempts(wait) => limited("too-many-attempts", wait),
            UserError::InvalidCode | UserError::InvalidResetCode => bad_request("invalid-code"),
            UserError::OtherAccount => forbidden("code-of-another-account"),
            UserError::EmailConfirmed => conflict("email-already-confirmed"),
            UserError::TooManyCodes(wait) => limited("rate-limited", wait),
            UserError::TooManyResetCodes(wait) => limited("rate-limited", wait),
            UserError::TooManyKeyMails(wait) => limited("rate-limited", wait),
            UserError::CannotSendCodes => unavailable("verification-not-configured"),
            UserError::CannotSendResetCodes => unavailable("forgot-password-not-configured"),
            UserError::SessionEnded => unauthorized("session-ended"),
            UserError::SessionBusy => conflict("session-busy"),
            UserError::Hash(error) => error.into(),
            UserError::Database(error) => error.into(),
        }
    }
}

http_kit::problem_responses! {
    pub(crate) UserProblems {
        UserError::NotFound("user"),
    }
    pub(crate) DeletionProblems {
        UserError::DeletionInProgress,
    }
    pub(crate) CodeProblems: BodyProblems {
        UserError::InvalidCode,
    }
    pub(crate) BackOffProblems {
        UserError::TooManyAttempts(Duration::from_secs(8)),
    }
}
