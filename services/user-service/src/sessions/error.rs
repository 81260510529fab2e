use actix_web::http::StatusCode;
use actix_web::http::header::SET_COOKIE;
use database::{DatabaseProblems, database_problem};
use http_kit::{BodyProblems, Problem};

use super::requests::browser::cross_site_request;
use super::requests::cookie;
use crate::sign_in::SignInProblems;

/// Why a session was not exchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    /// There is no session, or it has ended.
    #[error("the session has ended")]
    Ended,
    #[error("another exchange of the session was under way")]
    Busy,
    #[error(transparent)]
    Sign(#[from] auth::SignError),
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl SessionError {
    /// A session that has ended also takes its cookie with it.
    pub(super) fn into_problem(self, is_secure: bool) -> Problem {
        match self {
            Self::Ended => match cookie::removal(is_secure) {
                Some(removal) => session_ended().header(SET_COOKIE, removal),
                None => session_ended(),
            },
            Self::Busy => session_busy(),
            Self::Sign(_) => Problem::internal(&self),
            Self::Database(error) => database_problem(error),
        }
    }
}

fn session_ended() -> Problem {
    let detail = "The session has ended, or there is none. Sign in again.";
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "session-ended", detail);
    auth::challenge(problem, "")
}

fn session_busy() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "session-busy",
        "Another request of this browser exchanged the session at the same time. Repeat the request.",
    )
}

http_kit::problem_responses! {
    pub(super) ExchangeProblems: BodyProblems, DatabaseProblems {
        cross_site_request(),
        session_ended(),
        session_busy(),
    }
    pub(super) StartProblems: BodyProblems, SignInProblems {
        cross_site_request(),
    }
    /// Problems of routes that only the pages of this server may use.
    pub(super) BrowserProblems: DatabaseProblems {
        cross_site_request(),
    }
    pub(super) UserSessionProblems: auth::TokenProblems, DatabaseProblems {
        Problem::not_found("session"),
    }
}
