use std::time::Duration;

use database::Database;
use futures_util::future::join_all;
use messaging::{Message, Publisher, RelaySettings};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::ledger::WakeUp;
use crate::deliveries::worker::{look_at, store};

const RELAY: RelaySettings = RelaySettings {
    pause: Duration::from_millis(300),
    batch: 500,
};
/// A delivery whose message was sent is not swept again before this.
const QUIET: Duration = Duration::from_secs(10);
/// Sweeps in a row that find little but deliveries to park.
const SWEEPS: usize = 10;
const PAUSE_WITHOUT_BROKER: Duration = Duration::from_secs(1);

/// Finds deliveries that are due and that nobody speaks of: retries, and what a crash left behind.
#[derive(Clone)]
pub(super) struct Sweeper {
    pub(super) database: Database,
    pub(super) per_origin: u32,
}

impl Sweeper {
    /// Publishes what is due until it is cancelled.
    pub(super) async fn relay(self, publisher: Publisher, shutdown: CancellationToken) {
        messaging::relay(publisher, RELAY, shutdown, |limit| self.due(limit)).await;
    }

    /// While the broker is away, hands what is due to the ledger directly, until it is cancelled: the
    /// broker makes deliveries prompt, but none depends on it.
    pub(super) async fn go_without_broker(
        self,
        publisher: Publisher,
        wake_ups: mpsc::Sender<WakeUp>,
        shutdown: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(PAUSE_WITHOUT_BROKER) => {}
                () = shutdown.cancelled() => return,
            }
            if publisher.is_connected() {
                continue;
            }
            let messages = self.due(RELAY.batch).await.unwrap_or_default();
            let looks = messages.into_iter().map(|m| look_at(wake_ups.clone(), m));
            join_all(looks).await;
        }
    }

    /// The messages of deliveries whose origins have room. Those that are parked on the way do not keep
    /// the others waiting.
    async fn due(&self, limit: i64) -> Result<Vec<Message>, database::Error> {
        let (mut messages, per_origin) = (Vec::new(), self.per_origin);
        for _ in 0..SWEEPS {
            let sweep = move |connection: &mut _| -> Result<_, database::Error> {
                Ok(store::sweep(connection, limit, QUIET, per_origin)?)
            };
            let mut swept = self.database.run(sweep).await?;
            let parked = swept.found - swept.messages.len();
            messages.append(&mut swept.messages);
            let full = i64::try_from(swept.found).is_ok_and(|found| found >= limit);
            if !full || parked * 2 < swept.found {
                break;
            }
        }
        Ok(messages)
    }
}
