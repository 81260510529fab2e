use actix_web::http::StatusCode;
use diesel::result::Error as DieselError;
use http_kit::Problem;
use service_http::database_problem;

use crate::accounts::AccountError;

/// Why a deletion was not started, shown or cancelled.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeletionError {
    /// The account cannot be deleted.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// There is no such ticket of this user.
    #[error("there is no such ticket of this user")]
    UnknownTicket,
    /// The deletion is no longer in progress.
    #[error("the deletion has ended")]
    Ended,
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] database::Error),
}

impl From<DieselError> for DeletionError {
    fn from(error: DieselError) -> Self {
        Self::Database(error.into())
    }
}

impl From<DeletionError> for Problem {
    fn from(error: DeletionError) -> Self {
        match error {
            DeletionError::Account(error) => error.into(),
            DeletionError::UnknownTicket => Self::not_found("deletion ticket"),
            DeletionError::Ended => Self::new(
                StatusCode::CONFLICT,
                "deletion-ended",
                "The deletion has ended already, so it cannot be cancelled.",
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
