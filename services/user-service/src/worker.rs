//! What both workers share: the sweep for rows that are due, the gauges that show how many wait, and what
//! makes a worker ready.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use database::{Database, Error};
use diesel::sql_types::{BigInt, Double};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};
use http_kit::Health;
use messaging::{ConsumerConfig, Message, Publisher, RelaySettings};
use tokio_util::sync::CancellationToken;

const SWEEP: RelaySettings = RelaySettings {
    pause: Duration::from_millis(500),
    batch: 100,
};
/// A row that was published is left alone by sweeps for this long.
const WAKE_PAUSE: Duration = Duration::from_secs(30);
const MEASURE_PAUSE: Duration = Duration::from_secs(5);

/// Takes at most so many rows that are due for a wake-up, and leaves them alone for so long.
pub(crate) type Due = fn(&mut PgConnection, i64, Duration) -> Result<Vec<Message>, Error>;

/// Publishes rows that are due until it is cancelled.
pub(crate) fn sweep(
    publisher: Publisher,
    database: Database,
    shutdown: CancellationToken,
    due: Due,
) -> impl Future<Output = ()> + Send + 'static {
    messaging::relay(publisher, SWEEP, shutdown, move |batch| {
        let database = database.clone();
        async move {
            database
                .transaction(move |connection| due(connection, batch, WAKE_PAUSE))
                .await
        }
    })
}

/// How many rows are open, and for how long the oldest of them has been due.
#[derive(Debug, Clone, Copy, QueryableByName)]
struct Backlog {
    #[diesel(sql_type = BigInt)]
    open: i64,
    #[diesel(sql_type = Double)]
    overdue_seconds: f64,
}

/// Where a worker's rows stand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outbox {
    /// Jobs that delete users.
    Deletions,
    /// Messages to users.
    Notifications,
}

impl Outbox {
    fn name(self) -> &'static str {
        match self {
            Self::Deletions => "deletions",
            Self::Notifications => "notifications",
        }
    }

    fn backlog(self, connection: &mut PgConnection) -> Result<Backlog, Error> {
        let open = match self {
            Self::Deletions => "deletions WHERE status = 'in-progress'",
            Self::Notifications => "notifications WHERE status = 'pending'",
        };
        // The DSL knows no `extract`.
        let backlog = diesel::sql_query(format!(
            "SELECT count(*) AS open, \
             greatest(coalesce(extract(epoch FROM now() - min(next_attempt)), 0), 0)::double precision \
             AS overdue_seconds FROM {open}"
        ));
        Ok(backlog.get_result(connection)?)
    }
}

/// Keeps the gauges `outbox_open` and `outbox_overdue_seconds` up to date until it is cancelled: the
/// second one grows when nobody does the work.
pub(crate) async fn measure(database: Database, outbox: Outbox, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let backlog = database.run(move |connection| outbox.backlog(connection));
        if let Ok(backlog) = backlog.await {
            let open = u32::try_from(backlog.open).unwrap_or(u32::MAX);
            metrics::gauge!("outbox_open", "outbox" => outbox.name()).set(open);
            metrics::gauge!("outbox_overdue_seconds", "outbox" => outbox.name())
                .set(backlog.overdue_seconds);
        }
        tokio::select! {
            () = tokio::time::sleep(MEASURE_PAUSE) => {}
            () = shutdown.cancelled() => {}
        }
    }
}

/// A worker is ready when it can read its rows and messages can arrive.
pub(crate) fn health(database: &Database, consumption: &ConsumerConfig) -> Health {
    let (database, connected) = (database.clone(), Arc::clone(&consumption.connected));
    Health::default()
        .required("database", move || {
            let database = database.clone();
            async move { database.is_usable().await }
        })
        .required("queue", move || {
            let connected = connected.load(Ordering::Acquire);
            async move { connected }
        })
}
