use actix_web::http::StatusCode;
use database::database_problem;
use http_kit::Problem;

use crate::back_off::TooManyAttempts;
use crate::hashing::HashError;

/// Why a sign-in failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignInError {
    /// The user does not exist or the password is wrong. Callers do not learn which.
    #[error("the username or the password is wrong")]
    InvalidCredentials,
    /// The password is correct, but the account is inactive.
    #[error("the account is inactive")]
    Inactive,
    #[error(transparent)]
    TooManyAttempts(#[from] TooManyAttempts),
    #[error(transparent)]
    Hash(#[from] HashError),
    #[error(transparent)]
    Sign(#[from] auth::SignError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl SignInError {
    /// `failure` is the status of wrong credentials: `401`, or `403` for clients of Appmixer.
    pub(crate) fn into_problem(self, failure: StatusCode) -> Problem {
        match self {
            Self::InvalidCredentials => invalid_credentials(failure),
            Self::Inactive => Problem::new(
                StatusCode::FORBIDDEN,
                "account-inactive",
                "The account is inactive. Ask an administrator.",
            ),
            Self::TooManyAttempts(error) => error.into(),
            Self::Hash(error) => error.into(),
            Self::Sign(_) => Problem::internal(&self),
            Self::Database(error) => database_problem(error),
        }
    }
}

fn invalid_credentials(status: StatusCode) -> Problem {
    let problem = Problem::new(
        status,
        "invalid-credentials",
        "The username or the password is wrong.",
    );
    if status == StatusCode::UNAUTHORIZED {
        auth::challenge(problem, "")
    } else {
        problem
    }
}

http_kit::problem_responses! {
    pub(crate) SignInProblems {
        invalid_credentials(StatusCode::UNAUTHORIZED)
            => "The username or the password is wrong (403 if SIGN_IN_FAILURE_STATUS says so).",
        SignInError::Inactive.into_problem(StatusCode::UNAUTHORIZED)
            => "The password is correct, but the account is inactive.",
    }
}
