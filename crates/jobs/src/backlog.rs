use std::time::Duration;

use database::Database;
use tokio_util::sync::CancellationToken;

use crate::store::{JobId, JobTable};

const INTERVAL: Duration = Duration::from_secs(5);

/// Keeps the gauges `outbox_open` and `outbox_overdue_seconds` of a table up to date until it is cancelled.
/// The second one grows when no worker does the work.
pub(crate) async fn measure<Id: JobId>(
    database: Database,
    table: JobTable<Id>,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        let backlog = database.run(move |connection| table.backlog(connection));
        if let Ok(backlog) = backlog.await {
            let open = u32::try_from(backlog.open).unwrap_or(u32::MAX);
            metrics::gauge!("outbox_open", "outbox" => table.name()).set(open);
            metrics::gauge!("outbox_overdue_seconds", "outbox" => table.name())
                .set(backlog.overdue_seconds);
        }
        shutdown
            .run_until_cancelled(tokio::time::sleep(INTERVAL))
            .await;
    }
}
