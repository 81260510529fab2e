use std::time::Duration;

use messaging::Message;
use telemetry::RequestContext;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::deliveries::{DueDelivery, due_message};

/// After a message about at least so many deliveries, others are gathered for a moment.
const BUSY: usize = 8;
/// How long they are gathered. A message, and the load of what it names, cost as much as several deliveries.
pub(crate) const GATHERING: Duration = Duration::from_millis(10);
/// The largest number of commits that a message is about.
const COMMITS: usize = 1_024;

/// Deliveries that were committed together, and the request that caused them.
pub(crate) type Committed = (Vec<DueDelivery>, RequestContext);

/// Tells the workers about deliveries that were committed, on behalf of the first request: at once, or under load
/// together with those of the next moment, which is as long as `gathering`. It ends once every sender of them is gone.
///
/// What is gathered when the process ends is lost like a message, and costs a second: workers also look for deliveries.
pub(crate) async fn announce(
    mut committed: mpsc::UnboundedReceiver<Committed>,
    gathering: Duration,
    publish: impl Fn(Message),
) {
    let mut gathered = Vec::new();
    while committed.recv_many(&mut gathered, COMMITS).await > 0 {
        let (due, causes): (Vec<_>, Vec<_>) = gathered.drain(..).unzip();
        let due = due.concat();
        let cause = causes.into_iter().next();
        if let Some(message) = cause.and_then(|cause| due_message(&due, cause)) {
            publish(message);
        }
        if due.len() >= BUSY {
            sleep(gathering).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use parking_lot::Mutex;
    use telemetry::RequestContext;
    use testkit::eventually;
    use tokio::sync::mpsc;
    use tokio::task::yield_now;
    use values::DeliveryId;

    use super::{BUSY, Committed, announce};
    use crate::deliveries::DueDelivery;
    use crate::deliveries::lane_names::parse_due_message;

    type Committing = mpsc::UnboundedSender<Committed>;

    /// An announcer that gathers for three seconds, and how many deliveries each of its messages names.
    fn announcer() -> (Committing, Arc<Mutex<Vec<usize>>>) {
        let published = Arc::<Mutex<Vec<usize>>>::default();
        let messages = Arc::clone(&published);
        let (committing, committed) = mpsc::unbounded_channel();
        let gathering = Duration::from_secs(3);
        tokio::spawn(announce(committed, gathering, move |message| {
            let due = parse_due_message(&message.body).unwrap();
            messages.lock().push(due.len());
        }));
        (committing, published)
    }

    /// Commits deliveries, and lets the announcer run until it waits.
    async fn commit(committing: &Committing, number: usize) {
        let due = std::iter::repeat_with(|| DueDelivery {
            id: DeliveryId::generate(),
            lane: "https://engine.example:443 000000000000000000000001".to_owned(),
        });
        let due = due.take(number).collect();
        committing.send((due, RequestContext::fresh())).unwrap();
        yield_now().await;
    }

    #[tokio::test]
    async fn deliveries_are_announced_at_once_while_there_are_few() {
        let (committing, published) = announcer();
        for number in [1, 0, BUSY - 1, 1] {
            commit(&committing, number).await;
        }
        assert_eq!(*published.lock(), [1, BUSY - 1, 1]);
    }

    #[tokio::test]
    async fn what_follows_many_deliveries_is_announced_together_after_a_moment() {
        let (committing, published) = announcer();
        for number in [BUSY, 2, 3] {
            commit(&committing, number).await;
        }
        assert_eq!(*published.lock(), [BUSY]);
        eventually("the next message", async || {
            (*published.lock() == [BUSY, 5]).then_some(())
        })
        .await;
        // They were few, so nothing is gathered any more.
        commit(&committing, 1).await;
        assert_eq!(*published.lock(), [BUSY, 5, 1]);
    }
}
