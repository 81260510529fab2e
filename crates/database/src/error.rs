use diesel::r2d2::PoolError;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

/// Why the database did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Every connection is in use and enough work waits already.
    #[error("the database is busy")]
    Busy,
    /// Others hold what the statement wanted, or it took too long. It did nothing and can be tried again.
    #[error("the database could not do it in time")]
    Contended(#[source] DieselError),
    /// The database cannot be reached, or the connection broke.
    #[error("the database cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The statement failed.
    #[error("a database statement failed")]
    Statement(#[source] DieselError),
    /// The closure panicked; its transaction was rolled back.
    #[error("database work panicked")]
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
        // What a server says while it stops or starts has no kind of its own in diesel.
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

/// Whether the server ended a wait or a statement: two that waited for each other, or a time limit.
fn is_contention(error: &DieselError) -> bool {
    // diesel has no kinds for the SQLSTATEs 40P01, 55P03 and 57014, and does not show the state.
    matches!(
        error,
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, information)
            if information.message().contains("deadlock detected")
                || information.message().contains("canceling statement due to")
    )
}

/// The name of the constraint that a statement violated, so that the database decides and the code
/// only translates.
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
