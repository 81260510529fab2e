use actix_web::http::StatusCode;
use auth::TokenProblems;
use database::{DatabaseProblems, database_problem};
use http_kit::{BodyProblems, Problem};
use values::Invalid;

use crate::accounts::AccountError;
use crate::back_off::TooManyAttempts;

/// Why a key was not made, ended, confirmed or exchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error("the user does not exist")]
    NoUser,
    /// There is no such key, or it is another user's.
    #[error("the key does not exist")]
    NoKey,
    /// The token's user was changed or deleted since.
    #[error("the token was revoked")]
    CallerGone,
    /// The user cannot have keys now.
    #[error("the user is inactive")]
    Inactive,
    /// The scope of administrators, for a user who is none.
    #[error("the user is no administrator")]
    NotAdmin,
    /// A key with which an administrator could decide for a person.
    #[error("the key would decide for a person")]
    DecidesForPerson,
    /// The user has as many keys as one may have.
    #[error("the user has too many keys")]
    TooMany(usize),
    /// The text is no valid key.
    #[error("the key is unknown or has ended")]
    Invalid,
    #[error(transparent)]
    TooManyAttempts(#[from] TooManyAttempts),
    #[error(transparent)]
    Sign(#[from] auth::SignError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        let of_scopes = |code, message: &'static str| {
            Self::invalid_field("scopes", Invalid::new(code, message))
        };
        match error {
            KeyError::NoUser => AccountError::NotFound.into(),
            KeyError::NoKey => Self::not_found("key"),
            KeyError::CallerGone => auth::token_revoked(),
            KeyError::Inactive => Self::new(
                StatusCode::CONFLICT,
                "user-inactive",
                "The user is inactive or is being deleted. Keys are for active users.",
            ),
            KeyError::NotAdmin => of_scopes(
                "not-an-administrator",
                "Must not have `admin`, because the user is no administrator.",
            ),
            KeyError::DecidesForPerson => of_scopes(
                "decides-for-a-person",
                "Must not have `tasks:decide`: a key that an administrator makes for a person never decides.",
            ),
            KeyError::TooMany(most) => Self::new(
                StatusCode::CONFLICT,
                "too-many-keys",
                format!("A user has at most {most} keys. End one that is no longer needed first."),
            ),
            KeyError::Invalid => auth::invalid_key(),
            KeyError::TooManyAttempts(error) => error.into(),
            KeyError::Sign(_) => Self::internal(&error),
            KeyError::Database(error) => database_problem(error),
        }
    }
}

http_kit::problem_responses! {
    /// Problems of listing one's own keys.
    pub(super) OwnKeysProblems: TokenProblems, DatabaseProblems {
        auth::key_not_accepted(),
    }
    /// Problems of ending one's own key.
    pub(super) OwnKeyProblems: OwnKeysProblems {
        KeyError::NoKey,
    }
    pub(super) CreateKeyProblems: OwnKeysProblems, BodyProblems {
        KeyError::TooMany(50),
    }
    /// Problems of what administrators do with keys.
    pub(super) UserKeysProblems: TokenProblems, DatabaseProblems {
        auth::insufficient_scope(auth::ADMIN_SCOPE),
        auth::key_not_accepted(),
    }
    /// Problems of what administrators do with a user's keys.
    pub(super) UserKeyProblems: UserKeysProblems {
        KeyError::NoUser,
        KeyError::NoKey,
    }
    pub(super) CreateUserKeyProblems: UserKeysProblems, BodyProblems {
        KeyError::NoUser,
        KeyError::Inactive,
        KeyError::TooMany(50),
    }
    pub(super) AllKeysProblems: UserKeysProblems, http_kit::QueryProblems {
    }
}
