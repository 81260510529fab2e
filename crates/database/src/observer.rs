//! Watches the statements of a connection.
//!
//! diesel shows the SQLSTATE of an error only as a [`DatabaseErrorKind`], which has no variant for deadlocks and
//! timeouts, and the server's messages may be in any language. But a statement that exceeded a limit is known by
//! the time that it took, and a deadlock by its details, which name the processes of its cycle.

use std::time::{Duration, Instant};

use diesel::connection::{
    DebugQuery, Instrumentation, InstrumentationEvent, SimpleConnection as _,
};
use diesel::result::{DatabaseErrorInformation, DatabaseErrorKind, Error};
use diesel::{Connection as _, PgConnection, QueryResult, RunQueryDsl as _};

use tracing::Span;

use crate::StatementLimits;
use crate::error::{is_connection_loss, is_disk_full};

#[diesel::declare_sql_function]
extern "SQL" {
    /// The server's process of the connection.
    fn pg_backend_pid() -> Integer;
}

/// How far the clocks of the server and of this process may differ while a statement runs.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);

/// What diesel writes between a statement and its values.
const VALUES: &str = " -- binds: ";
/// What the comment with the placeholders begins with that a raw statement has.
const PLACEHOLDERS: &str = "/* $";
/// The most characters of a statement that a span has.
const MAX_TEXT_LENGTH: usize = 4_000;

#[derive(Debug)]
struct StatementObserver {
    limits: StatementLimits,
    /// The server's process, as its messages write it.
    process: String,
    started: Instant,
    outcome: Outcome,
    /// The span of the statement under way, if traces are exported.
    span: Span,
}

/// What happened since the last call of [`take_outcome`].
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Whether the server responded to the last statement; `None` if there was none.
    pub(crate) responded: Option<bool>,
    /// The message of a statement that the server ended because of a deadlock or a timeout.
    pub(crate) ended: Option<String>,
    /// A statement failed for a reason that diesel does not tell. The connection may have prepared it for a table that
    /// has changed since (SQLSTATE 0A000), and then it fails each time.
    pub(crate) unexplained: bool,
    pub(crate) trouble: Option<Trouble>,
}

/// Why the whole database is of no use, with the server's message.
#[derive(Debug)]
pub(crate) enum Trouble {
    Lost(String),
    /// A statement would have changed something on a server that only reads: after a failover, the connection leads to
    /// a standby.
    ReadOnly(String),
    DiskFull(String),
}

/// Sets the limits of a connection's statements, and watches its statements from now on.
pub(crate) fn limit_statements(
    connection: &mut PgConnection,
    limits: StatementLimits,
) -> QueryResult<()> {
    connection.batch_execute(&limits.to_sql())?;
    let process: i32 = diesel::select(pg_backend_pid()).get_result(connection)?;
    connection.set_instrumentation(StatementObserver {
        limits,
        process: process.to_string(),
        started: Instant::now(),
        outcome: Outcome::default(),
        span: Span::none(),
    });
    Ok(())
}

pub(crate) fn take_outcome(connection: &mut PgConnection) -> Outcome {
    let observer = connection.instrumentation();
    let observer = observer.downcast_mut::<StatementObserver>();
    let outcome = observer.map(|observer| std::mem::take(&mut observer.outcome));
    outcome.unwrap_or_default()
}

/// Sets what the next call of [`take_outcome`] takes.
pub(crate) fn put_outcome(connection: &mut PgConnection, outcome: Outcome) {
    let observer = connection.instrumentation();
    if let Some(observer) = observer.downcast_mut::<StatementObserver>() {
        observer.outcome = outcome;
    }
}

impl StatementObserver {
    fn record(&mut self, error: Option<&Error>) {
        self.outcome.responded = Some(!error.is_some_and(is_connection_loss));
        match error {
            Some(error) if is_connection_loss(error) => {
                self.outcome.trouble = Some(Trouble::Lost(error.to_string()));
            }
            Some(Error::DatabaseError(DatabaseErrorKind::Unknown, information)) => {
                let message = information.message().to_owned();
                if self.exceeded_limit() || self.is_deadlock(&**information) {
                    self.outcome.ended = Some(message);
                } else if is_disk_full(&**information) {
                    self.outcome.trouble = Some(Trouble::DiskFull(message));
                } else {
                    self.outcome.unexplained = true;
                }
            }
            Some(Error::DatabaseError(DatabaseErrorKind::ReadOnlyTransaction, information)) => {
                let message = information.message().to_owned();
                self.outcome.trouble = Some(Trouble::ReadOnly(message));
            }
            _ => {}
        }
    }

    fn exceeded_limit(&self) -> bool {
        self.started.elapsed() + CLOCK_TOLERANCE >= self.limits.shortest()
    }

    /// Whether the details have a line for each of several processes, of which this connection's is one.
    fn is_deadlock(&self, information: &(dyn DatabaseErrorInformation + Send + Sync)) -> bool {
        let details = information.details().unwrap_or_default();
        let mut numbers = details.split(|character: char| !character.is_ascii_digit());
        details.lines().count() > 1 && numbers.any(|number| number == self.process)
    }
}

/// The beginning of a statement, without the values that diesel shows after it.
fn text_without_values(query: &dyn DebugQuery) -> String {
    let text = query.to_string();
    let statement = text.split(VALUES).next().unwrap_or_default();
    let statement = match statement.strip_prefix(PLACEHOLDERS) {
        Some(commented) => commented.split_once("*/").map_or("", |(_, rest)| rest),
        None => statement,
    };
    let statement = statement.trim_start();
    statement.chars().take(MAX_TEXT_LENGTH).collect()
}

impl Instrumentation for StatementObserver {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartQuery { query, .. } => {
                self.started = Instant::now();
                self.span = telemetry::statement_span(|| text_without_values(query));
            }
            InstrumentationEvent::FinishQuery { error, .. } => {
                let span = std::mem::replace(&mut self.span, Span::none());
                if error.is_some() {
                    telemetry::set_failed(&span, "the statement failed");
                }
                self.record(error);
            }
            _ => {}
        }
    }
}
