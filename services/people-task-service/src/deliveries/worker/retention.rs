use std::time::Duration;

use database::{Connection, Database, Error, interval, prepared};
use diesel::sql_types::{Integer, Interval};
use diesel::{QueryableByName, RunQueryDsl as _};
use tokio_util::sync::CancellationToken;

/// How often partitions are created and dropped, and how soon after a failure.
const PAUSE: Duration = Duration::from_secs(3_600);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);

#[derive(QueryableByName)]
struct Maintained {
    #[diesel(sql_type = Integer)]
    dropped: i32,
}

/// Keeps the partitions of `finished_deliveries` until it is cancelled: those of the next two weeks exist, and those
/// whose deliveries have all been finished for longer than `keep` are dropped.
pub(super) async fn maintain(database: Database, keep: Duration, shutdown: CancellationToken) {
    let maintain = move |connection: &mut Connection| -> Result<i32, Error> {
        let done: Maintained = prepared("SELECT maintain_finished_deliveries($1) AS dropped")
            .bind::<Interval, _>(interval(keep))
            .get_result(connection)?;
        Ok(done.dropped)
    };
    loop {
        let mut pause = PAUSE;
        match database.run(maintain).await {
            Ok(0) => {}
            Ok(dropped) => tracing::info!(dropped, "dropped partitions of old deliveries"),
            Err(error) => {
                tracing::warn!(error = ?error, "the partitions of deliveries could not be maintained");
                pause = PAUSE_AFTER_FAILURE;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => return,
        }
    }
}
