use diesel::r2d2::PoolError;
use diesel::result::{DatabaseErrorKind, Error as DieselError};

/// The error below an [`Error`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why the database did not run the work.
///
/// The variants follow from diesel's [`DatabaseErrorKind`], which stands for the SQLSTATE, and never from a message:
/// servers write those in their own language. [`Database::run`](crate::Database::run) recognises the deadlocks and
/// timeouts, for which diesel has no kind.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Every connection is in use, and too many callers wait already or waited too long.
    #[error("the database is busy")]
    Busy,
    /// The server ended the statement because of a deadlock or a timeout. It had no effect and can be retried.
    #[error("the database ended a statement")]
    Contended(#[source] Cause),
    /// The database cannot be reached, or the connection broke.
    #[error("the database is unavailable")]
    Unavailable(#[source] Cause),
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

impl Error {
    /// The same error for another request of a batch.
    pub(crate) fn for_another_request(&self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::Panicked => Self::Panicked,
            Self::Unavailable(cause) => Self::Unavailable(cause.to_string().into()),
            Self::Contended(cause) => Self::Contended(cause.to_string().into()),
            Self::Statement(cause) => Self::Contended(cause.to_string().into()),
        }
    }
}

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        let kind = match &error {
            DieselError::DatabaseError(kind, _) => Some(kind),
            _ => None,
        };
        match kind {
            _ if is_connection_loss(&error) => Self::Unavailable(Box::new(error)),
            // After a failover, the connection leads to a server that is no longer the primary.
            Some(DatabaseErrorKind::ReadOnlyTransaction) => Self::Unavailable(Box::new(error)),
            Some(DatabaseErrorKind::SerializationFailure) => Self::Contended(Box::new(error)),
            _ => Self::Statement(error),
        }
    }
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// Whether the connection can no longer be used, because the server, the network or an administrator ended it.
pub(crate) fn is_connection_loss(error: &DieselError) -> bool {
    matches!(
        error,
        DieselError::BrokenTransactionManager
            | DieselError::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                _,
            )
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
