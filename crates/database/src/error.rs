use diesel::r2d2::PoolError;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

/// Why the database did not run the work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Every connection is in use, and too many callers wait already or waited too long.
    #[error("the database is busy")]
    Busy,
    /// The server ended the statement because of a deadlock or a timeout. It had no effect and can be retried.
    #[error("the database ended a statement")]
    Contended(#[source] DieselError),
    /// The database cannot be reached, or the connection broke.
    #[error("the database is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The statement failed.
    #[error("a database statement failed")]
    Statement(#[source] DieselError),
    /// The closure panicked; its transaction was rolled back.
    #[error("a database closure panicked")]
    Panicked,
}

impl Error {
    /// The name of the constraint that the statement violated.
    #[must_use]
    pub fn violated_constraint(&self) -> Option<&str> {
        match self {
            Self::Statement(error) => violated_constraint(error),
            _ => None,
        }
    }
}

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        if is_connection_loss(&error) {
            Self::Unavailable(Box::new(error))
        } else if is_contention(&error) {
            Self::Contended(error)
        } else {
            Self::Statement(error)
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

fn is_connection_loss(error: &DieselError) -> bool {
    match error {
        DieselError::BrokenTransactionManager => true,
        DieselError::DatabaseError(
            DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
            _,
        ) => true,
        // diesel has no kind for the errors of a server that stops or starts.
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, information) => {
            let message = information.message();
            message.contains("terminating connection")
                || message.contains("the database system is")
                || message.contains("server closed the connection")
                || message.contains("no connection to the server")
        }
        _ => false,
    }
}

/// Whether the server ended the statement because of a deadlock or a timeout.
fn is_contention(error: &DieselError) -> bool {
    // diesel has no kinds for the SQLSTATEs 40P01, 55P03 and 57014, and does not show the state.
    matches!(
        error,
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, information)
            if information.message().contains("deadlock detected")
                || information.message().contains("canceling statement due to")
    )
}

/// The name of the constraint that a statement violated.
#[must_use]
pub fn violated_constraint(error: &DieselError) -> Option<&str> {
    match error {
        DieselError::DatabaseError(
            DatabaseErrorKind::UniqueViolation
            | DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::CheckViolation,
            information,
        ) => information.constraint_name(),
        _ => None,
    }
}
