use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use telemetry::Outage;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::message::Message;
use crate::publisher::Publisher;

/// A queue that holds more messages than this needs no more; due rows wait in the database.
const MAX_QUEUE_DEPTH: u32 = 1_000;
const PAUSE_AFTER_FULL_BATCH: Duration = Duration::from_millis(100);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// How the database is swept for rows that are due.
#[derive(Debug, Clone, Copy)]
pub struct RelaySettings {
    /// The pause after a sweep that found less than a batch.
    pub pause: Duration,
    /// The largest number of rows in one sweep.
    pub batch: i64,
}

/// The outbox relay: publishes rows that are due and have no message in flight, until it is cancelled.
/// Those are retries, and what a crash or a full buffer left behind.
///
/// `due` takes a batch size and returns the messages of at most that many rows, which it marks so that
/// no sweep returns them again for a while. It is not called while the broker is unavailable or its
/// queue is long, so that after an outage the backlog is published gradually.
pub async fn relay<E: StdError, R: Future<Output = Result<Vec<Message>, E>>>(
    publisher: Publisher,
    settings: RelaySettings,
    shutdown: CancellationToken,
    due: impl Fn(i64) -> R,
) {
    let outage = Outage::new("due rows cannot be read");
    while !shutdown.is_cancelled() {
        let mut pause = settings.pause;
        if publisher.is_connected() && publisher.depth() < MAX_QUEUE_DEPTH {
            let read = due(settings.batch).await;
            outage.record(&read);
            match read {
                Ok(messages) => {
                    let full = i64::try_from(messages.len()).is_ok_and(|n| n >= settings.batch);
                    publisher.send(messages);
                    if full {
                        // The depth is read once a second, so a backlog goes out in steps.
                        pause = pause.min(PAUSE_AFTER_FULL_BATCH);
                    }
                }
                Err(_) => pause = PAUSE_AFTER_FAILURE,
            }
        }
        shutdown.run_until_cancelled(sleep(pause)).await;
    }
}
