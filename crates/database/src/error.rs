use diesel::r2d2::PoolError;
use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error as DieselError};
use http_kit::Problem;

/// The error below an [`Error`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why the database did not run the work.
///
/// The variants follow from diesel's [`DatabaseErrorKind`], which stands for the SQLSTATE, and never from a message:
/// servers write those in their own language. [`Database::run`](crate::Database::run) recognises the deadlocks and
/// timeouts, for which diesel has no kind, and a full disk is recognised by the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Every connection is in use, and too many callers wait already or waited too long.
    #[error("the database is busy")]
    Busy,
    /// The server ended the statement because of a deadlock or a timeout. It had no effect and can be retried.
    #[error("the database ended a statement")]
    Contended(#[source] Cause),
    /// The database cannot be reached, or does not accept changes. Nothing was written.
    #[error("the database is unavailable")]
    Unavailable(#[source] Cause),
    /// The connection broke. It is not known whether a commit succeeded that was under way.
    #[error("the connection to the database broke")]
    Lost(#[source] Cause),
    /// The connection lacks a statement that was prepared on it.
    #[error(
        "a prepared statement is missing: a pooler such as PgBouncer must be in session mode, or left out of DATABASE_URL"
    )]
    Pooled(#[source] DieselError),
    /// The statement failed.
    #[error("a database statement failed")]
    Statement(#[source] DieselError),
    /// The closure panicked; its transaction was rolled back.
    #[error("a database closure panicked")]
    Panicked,
}

impl Error {
    /// The name of the constraint that the statement violated.
    pub fn violated_constraint(&self) -> Option<&str> {
        match self {
            Self::Statement(DieselError::DatabaseError(
                DatabaseErrorKind::UniqueViolation
                | DatabaseErrorKind::ForeignKeyViolation
                | DatabaseErrorKind::CheckViolation,
                information,
            )) => information.constraint_name(),
            _ => None,
        }
    }

    pub(crate) fn for_another_request(&self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::Panicked => Self::Panicked,
            Self::Unavailable(cause) => Self::Unavailable(cause.to_string().into()),
            Self::Lost(cause) => Self::Lost(cause.to_string().into()),
            Self::Contended(cause) => Self::Contended(cause.to_string().into()),
            Self::Statement(cause) | Self::Pooled(cause) => {
                Self::Contended(cause.to_string().into())
            }
        }
    }

    /// Whether no connection could be opened for as long as callers wait.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unavailable(cause) if cause.is::<PoolError>())
    }

    /// Whether no statement would succeed now. The pool logs that once for all.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Busy | Self::Unavailable(_) | Self::Lost(_))
    }

    /// Whether nothing was written. Otherwise it is not known.
    pub fn wrote_nothing(&self) -> bool {
        !matches!(self, Self::Lost(_) | Self::Panicked)
    }

    /// Logs a failure of background work, unless it is one of many of an outage.
    pub fn warn(&self, message: &str) {
        if self.is_outage() {
            tracing::debug!(error = ?self, "{message}");
        } else {
            tracing::warn!(error = ?self, "{message}");
        }
    }
}

impl From<DieselError> for Error {
    fn from(error: DieselError) -> Self {
        use DatabaseErrorKind::{ReadOnlyTransaction, SerializationFailure, Unknown};
        let accepts_no_changes = match &error {
            // After a failover, the connection leads to a server that is no longer the primary.
            DieselError::DatabaseError(ReadOnlyTransaction, _) => true,
            DieselError::DatabaseError(Unknown, information) => lacks_resources(&**information),
            _ => false,
        };
        match &error {
            _ if accepts_no_changes => Self::Unavailable(Box::new(error)),
            _ if is_connection_loss(&error) => Self::Lost(Box::new(error)),
            DieselError::DatabaseError(SerializationFailure, _) => Self::Contended(Box::new(error)),
            _ if is_pooled(&error) => Self::Pooled(error),
            _ => Self::Statement(error),
        }
    }
}

/// Logs the cause of a failure unless that is an outage, which the pool logs.
impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy => overloaded(),
            Error::Contended(source) => {
                tracing::warn!(error = ?source, "the database ended a statement");
                overloaded()
            }
            Error::Unavailable(source) | Error::Lost(source) => {
                tracing::debug!(error = ?source, "the database is unavailable");
                unavailable()
            }
            Error::Statement(_) | Error::Pooled(_) | Error::Panicked => Self::internal(&error),
        }
    }
}

fn overloaded() -> Problem {
    let detail = "The service is overloaded. Try again shortly.";
    Problem::unavailable("overloaded", detail)
}

fn unavailable() -> Problem {
    let detail = "The database is unavailable. Try again shortly.";
    Problem::unavailable("database-unavailable", detail)
}

http_kit::problem_responses! {
    /// Problems of operations that use the database.
    pub DatabaseProblems {
        overloaded(),
        unavailable(),
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

/// Directories of the server, which its messages name in every language, with a number after each.
const DIRECTORIES: [&str; 5] = ["base/", "global/", "pg_tblspc/", "pg_wal/", "pg_xact/"];
/// Other names in messages about resources.
const RESOURCES: [&str; 3] = ["pgsql_tmp", "temp_file_limit", "max_locks_per_transaction"];

/// Whether the server could not run the statement for want of a resource, as in the SQLSTATE class 53: an operator must
/// help, and nothing is wrong with the statement.
pub(crate) fn lacks_resources(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    let (message, hint) = (information.message(), information.hint());
    let texts = [message, hint.unwrap_or_default()];
    let names = |name: &&str| texts.iter().any(|text| text.contains(name));
    names_file(message)
        || RESOURCES.iter().any(names)
        || names(&"out of memory")
        || is_disk_full(information)
}

/// Whether the server's disk is full. The hint to make space tells that from other errors about a file.
pub(crate) fn is_disk_full(information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
    let message = information.message();
    let is_known = ["No space left on device", "disk full", "disk_full"];
    (names_file(message) && information.hint().is_some())
        || is_known.iter().any(|text| message.contains(text))
}

fn names_file(message: &str) -> bool {
    let numbers = |directory: &&str| {
        let mut names = message.split(*directory).skip(1);
        names.any(|name| name.starts_with(|first: char| first.is_ascii_digit()))
    };
    DIRECTORIES.iter().any(numbers)
}

/// Whether diesel's name of a prepared statement is unknown to the server, or known too well: the connection is not
/// always the same one.
fn is_pooled(error: &DieselError) -> bool {
    matches!(
        error,
        DieselError::DatabaseError(_, information) if information.message().contains("__diesel_stmt_")
    )
}
