use actix_web::http::header::SET_COOKIE;
use database::DatabaseProblems;
use http_kit::{BodyProblems, Problem};

use super::requests::browser::cross_site_request;
use super::requests::cookie;
use crate::error::UserError;
use crate::sign_in::routes::SignInProblems;

/// A session that has ended also takes its cookie with it.
pub(super) fn exchange_problem(error: UserError, is_secure: bool) -> Problem {
    let has_ended = matches!(error, UserError::SessionEnded);
    let removal = cookie::removal(is_secure).filter(|_| has_ended);
    let problem = Problem::from(error);
    match removal {
        Some(removal) => problem.header(SET_COOKIE, removal),
        None => problem,
    }
}

http_kit::problem_responses! {
    pub(super) ExchangeProblems: BodyProblems, DatabaseProblems {
        cross_site_request(),
        UserError::SessionEnded,
        UserError::SessionBusy,
    }
    pub(super) StartProblems: BodyProblems, SignInProblems {
        cross_site_request(),
    }
    /// Problems of routes that only the pages of this server may use.
    pub(super) BrowserProblems: DatabaseProblems {
        cross_site_request(),
    }
    pub(super) UserSessionProblems: auth::TokenProblems, DatabaseProblems {
        UserError::NotFound("session"),
    }
}
