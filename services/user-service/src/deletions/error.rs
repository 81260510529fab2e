use actix_web::http::StatusCode;
use database::database_problem;
use http_kit::Problem;

use crate::accounts::AccountError;

/// Why a deletion cannot be started, shown or cancelled.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeletionError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("the user has no such ticket")]
    UnknownTicket,
    #[error("the deletion has ended")]
    Ended,
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<DeletionError> for Problem {
    fn from(error: DeletionError) -> Self {
        match error {
            DeletionError::Account(error) => error.into(),
            DeletionError::UnknownTicket => Self::not_found("deletion ticket"),
            DeletionError::Ended => Self::new(
                StatusCode::CONFLICT,
                "deletion-ended",
                "The deletion has already ended.",
            ),
            DeletionError::Database(error) => database_problem(error),
        }
    }
}

http_kit::problem_responses! {
    /// Problems of deleting a user.
    pub(crate) DeleteProblems {
        AccountError::NotFound,
        AccountError::LastAdmin => "The last active administrator cannot be deleted.",
    }
    /// Problems of operations on a deletion ticket.
    pub(crate) TicketProblems {
        DeletionError::UnknownTicket,
    }
    /// Problems of cancelling a deletion.
    pub(crate) CancelProblems: TicketProblems {
        DeletionError::Ended,
    }
}
