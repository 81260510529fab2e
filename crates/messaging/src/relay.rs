use std::error::Error as StdError;
use std::future::Future;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::{Message, Publisher};

/// A queue that holds more wake-ups than this has enough to do; its rows can wait in the database.
const ENOUGH_WAITING: u32 = 1_000;
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// How the database is swept for rows that are due.
#[derive(Debug, Clone, Copy)]
pub struct RelaySettings {
    /// The pause between two sweeps that found little.
    pub pause: Duration,
    /// Rows that one sweep takes at the most.
    pub batch: i64,
}

/// Publishes rows that are due until it is cancelled: what a crash or a full buffer left behind, and
/// retries whose time has come.
///
/// `due` takes at most so many rows, marks them as looked at (so that no other sweep takes them for a
/// while), and returns their messages. It is not called while the broker is away or has enough to
/// do, so an outage ends in a smooth catch-up.
pub async fn relay<F, R, E>(
    publisher: Publisher,
    settings: RelaySettings,
    shutdown: CancellationToken,
    due: F,
) where
    F: Fn(i64) -> R,
    R: Future<Output = Result<Vec<Message>, E>>,
    E: StdError,
{
    while !shutdown.is_cancelled() {
        let mut pause = settings.pause;
        if publisher.is_connected() && publisher.depth() < ENOUGH_WAITING {
            match due(settings.batch).await {
                Ok(messages) => {
                    let full = i64::try_from(messages.len()).is_ok_and(|n| n >= settings.batch);
                    publisher.send(messages);
                    if full {
                        // The depth is read once a second, so a backlog goes out in steps.
                        pause = pause.min(Duration::from_millis(100));
                    }
                }
                Err(error) => {
                    tracing::warn!(error = ?error, "due rows could not be read");
                    pause = PAUSE_AFTER_FAILURE;
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
