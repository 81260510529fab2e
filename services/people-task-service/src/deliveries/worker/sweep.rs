use std::time::Duration;

use database::{Connection, Database, Error};
use futures_util::future::join_all;
use messaging::{Message, Publisher, RelaySettings};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::message::{DueDelivery, handle_message};
use crate::deliveries::worker::store;

const RELAY: RelaySettings = RelaySettings {
    pause: Duration::from_millis(300),
    batch: 500,
};
/// How long after its message a delivery may be published again.
const REPUBLISH_AFTER: Duration = Duration::from_secs(10);
/// How many sweeps follow each other while they find mostly deliveries to park.
const MAX_SWEEPS: usize = 10;
const PAUSE_WITHOUT_BROKER: Duration = Duration::from_secs(1);

/// Finds due deliveries that have no message in flight: retries, and what a crash left behind.
#[derive(Clone)]
pub(super) struct Sweeper {
    pub(super) database: Database,
    pub(super) per_host: u32,
}

impl Sweeper {
    /// Publishes due deliveries until it is cancelled.
    pub(super) async fn relay(self, publisher: Publisher, shutdown: CancellationToken) {
        messaging::relay(publisher, RELAY, shutdown, |limit| self.due(limit)).await;
    }

    /// Passes due deliveries to the dispatcher directly while the broker is unavailable, until it is
    /// cancelled. The broker makes deliveries prompt, but no delivery depends on it.
    pub(super) async fn run_without_broker(
        self,
        publisher: Publisher,
        due: mpsc::Sender<DueDelivery>,
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
            let handling = messages
                .into_iter()
                .map(|message| handle_message(due.clone(), message));
            join_all(handling).await;
        }
    }

    /// Messages for due deliveries to hosts below their limit. Sweeps that mostly park deliveries are
    /// repeated at once, so that these do not delay the others.
    async fn due(&self, limit: i64) -> Result<Vec<Message>, Error> {
        let (mut messages, per_host) = (Vec::new(), self.per_host);
        for _ in 0..MAX_SWEEPS {
            let sweep = move |connection: &mut Connection| -> Result<_, Error> {
                Ok(store::sweep(connection, limit, REPUBLISH_AFTER, per_host)?)
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
