//! Whether the database can be used, as its connections and statements show.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection as _;
use diesel::dsl::sql;
use diesel::r2d2::Error as ConnectError;
use diesel::result::Error as DieselError;
use diesel::sql_types::Bool;
use diesel::{Connection as _, ConnectionError, PgConnection, RunQueryDsl as _};
use parking_lot::Mutex;
use telemetry::Outage;

use crate::Error;
use crate::error::{is_connection_loss, is_disk_full};
use crate::observer::{self, Outcome, Trouble};

/// The pauses between attempts to connect while they fail: threads of the pool try for each connection that it lacks.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How long the disk counts as full after a statement that failed because of it.
const FULL_FOR: Duration = Duration::from_secs(5);

pub(crate) const UNREACHABLE: &str = "the database cannot be reached";
const READ_ONLY: &str =
    "the database is read-only: it is a standby, or default_transaction_read_only is on";
const DISK_FULL: &str = "the disk of the database is full";

/// What the pools of a process know about their database, and log when it changes.
#[derive(Debug)]
pub(crate) struct Availability {
    reaching: Outage,
    keeping: Outage,
    writing: Outage,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failed: Option<FailedAttempt>,
    /// When the disk was last found full, until it is known to have space.
    full: Option<Instant>,
    read_only: Option<Instant>,
}

#[derive(Debug)]
struct FailedAttempt {
    at: Instant,
    pause: Duration,
    message: String,
}

impl Default for Availability {
    fn default() -> Self {
        Self {
            reaching: Outage::new(UNREACHABLE),
            keeping: Outage::new("connections to the database break"),
            writing: Outage::new("the database does not accept changes"),
            state: Mutex::default(),
        }
    }
}

impl Availability {
    /// Opens a connection, unless the last attempt has just failed.
    pub(crate) fn connect<T>(
        &self,
        open: impl FnOnce() -> Result<T, ConnectError>,
    ) -> Result<T, ConnectError> {
        if let Some(failed) = &self.state.lock().failed
            && failed.at.elapsed() < failed.pause
        {
            let error = ConnectionError::BadConnection(failed.message.clone());
            return Err(ConnectError::ConnectionError(error));
        }
        let opened = open();
        match &opened {
            Ok(_) => {
                self.state.lock().failed = None;
                self.reaching.end();
            }
            Err(error) => self.record_failed_attempt(on_one_line(&error.to_string())),
        }
        opened
    }

    fn record_failed_attempt(&self, message: String) {
        self.reaching.fail(&format_args!("{message}"));
        let mut state = self.state.lock();
        let pause = match &state.failed {
            None => FIRST_PAUSE,
            Some(failed) => (failed.pause * 2).min(MAX_PAUSE),
        };
        let at = Instant::now();
        state.failed = Some(FailedAttempt { at, pause, message });
    }

    pub(crate) fn record(&self, trouble: Option<Trouble>) {
        match trouble {
            None => {}
            Some(Trouble::Lost(message)) => {
                self.keeping
                    .fail(&format_args!("{}", on_one_line(&message)));
            }
            Some(Trouble::ReadOnly(message)) => self.writing.fail(&format_args!("{message}")),
            Some(Trouble::DiskFull(message)) => {
                self.state.lock().full = Some(Instant::now());
                self.writing.fail(&format_args!("{message}"));
            }
        }
    }

    /// Checks the server on a connection. Returns why it cannot be used.
    pub(crate) fn check(
        &self,
        connection: &mut PgConnection,
    ) -> Result<Option<&'static str>, Error> {
        if is_read_only(connection)? {
            self.state.lock().read_only = Some(Instant::now());
            let outcome = Outcome {
                responded: Some(true),
                trouble: Some(Trouble::ReadOnly(READ_ONLY.to_owned())),
                ..Outcome::default()
            };
            observer::put_outcome(connection, outcome);
            return Ok(Some(READ_ONLY));
        }
        let full = self.state.lock().full;
        if let Some(full) = full {
            if full.elapsed() < FULL_FOR || !has_space(connection)? {
                return Ok(Some(DISK_FULL));
            }
            self.state.lock().full = None;
        }
        self.keeping.end();
        self.writing.end();
        Ok(None)
    }

    /// Whether a connection that was opened then may lead to a server that only reads, while a new one may lead to the
    /// primary. A connection also keeps the `default_transaction_read_only` of its beginning.
    pub(crate) fn is_outdated(&self, opened: Instant) -> bool {
        let found = self.state.lock().read_only;
        found.is_some_and(|found| opened < found)
    }
}

pub(crate) fn is_read_only(connection: &mut PgConnection) -> Result<bool, DieselError> {
    sql::<Bool>("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool")
        .get_result(connection)
}

/// Whether a table can grow by a megabyte. What is written is rolled back. A role that may create no temporary table
/// finds out by its next change.
fn has_space(connection: &mut PgConnection) -> Result<bool, DieselError> {
    let written = connection.transaction(|connection| {
        connection.batch_execute(
            "CREATE TEMPORARY TABLE countersign_space AS SELECT repeat('x', 1900) FROM generate_series(1, 500)",
        )?;
        Err::<(), _>(DieselError::RollbackTransaction)
    });
    match written {
        Err(DieselError::DatabaseError(_, information)) if is_disk_full(&*information) => Ok(false),
        Err(error) if is_connection_loss(&error) => Err(error),
        _ => Ok(true),
    }
}

/// libpq writes several lines, of which each has its cause at its end.
fn on_one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Result<(), ConnectError> {
        let error = ConnectionError::BadConnection("connection refused\n\tIs it running?\n".into());
        Err(ConnectError::ConnectionError(error))
    }

    #[test]
    fn a_server_that_cannot_be_reached_gets_few_attempts() {
        let (availability, mut attempts) = (Availability::default(), 0);
        let started = Instant::now();
        while attempts < 3 {
            let failed = availability.connect(|| {
                attempts += 1;
                refused()
            });
            let message = failed.unwrap_err().to_string();
            assert!(message.contains("connection refused"), "{message}");
        }
        // At 0, 100 and 300 ms.
        assert!(started.elapsed() >= 3 * FIRST_PAUSE);
        let opened = loop {
            if let Ok(opened) = availability.connect(|| Ok(1)) {
                break opened;
            }
        };
        assert_eq!(opened, 1);
        assert!(availability.connect(|| Ok(2)).is_ok());
    }

    #[test]
    fn a_message_of_several_lines_is_logged_as_one() {
        assert_eq!(
            on_one_line("refused\n\tIs it running?\n"),
            "refused Is it running?"
        );
    }
}
