use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use messaging::Message;
use parking_lot::Mutex;
use telemetry::RequestContext;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use crate::deliveries::{DueDelivery, due_message};

/// After a message about at least so many deliveries, others are gathered for a moment.
const BUSY: usize = 8;
/// How long they are gathered. A message, and the load of what it names, cost as much as several deliveries.
const GATHERING: Duration = Duration::from_millis(10);

/// Tells the workers about deliveries that were committed: at once, or under load together with those of the next moment.
///
/// What is gathered when the process ends is lost like a message, and costs a second: workers also look for deliveries.
#[derive(Clone)]
pub(crate) struct Announcer {
    publish: Arc<dyn Fn(Message) + Send + Sync>,
    gathering: Duration,
    gathered: Arc<Mutex<Gathered>>,
}

#[derive(Default)]
struct Gathered {
    due: Vec<DueDelivery>,
    /// The request that caused the first of them.
    cause: Option<RequestContext>,
    /// Until when others are gathered.
    until: Option<Instant>,
    /// Whether a task publishes them at that time.
    is_awaited: bool,
}

impl Announcer {
    pub(crate) fn new(publish: impl Fn(Message) + Send + Sync + 'static) -> Self {
        Self {
            publish: Arc::new(publish),
            gathering: GATHERING,
            gathered: Arc::default(),
        }
    }

    /// Announces deliveries that a request caused. Must be called on a thread of a runtime.
    pub(crate) fn announce(
        &self,
        due: impl IntoIterator<Item = DueDelivery>,
        cause: &RequestContext,
    ) {
        let mut gathered = self.gathered.lock();
        gathered.due.extend(due);
        if gathered.due.is_empty() || gathered.is_awaited {
            return;
        }
        gathered.cause = Some(cause.clone());
        let now = Instant::now();
        let Some(until) = gathered.until.filter(|until| *until > now) else {
            return self.publish(&mut gathered, now);
        };
        gathered.is_awaited = true;
        let announcer = self.clone();
        Handle::current().spawn(async move {
            sleep_until(until).await;
            let mut gathered = announcer.gathered.lock();
            gathered.is_awaited = false;
            announcer.publish(&mut gathered, Instant::now());
        });
    }

    fn publish(&self, gathered: &mut Gathered, now: Instant) {
        let due = take(&mut gathered.due);
        gathered.until = (due.len() >= BUSY).then(|| now + self.gathering);
        let message = |cause| due_message(&due, cause);
        if let Some(message) = gathered.cause.take().and_then(message) {
            (self.publish)(message);
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
    use values::DeliveryId;

    use super::{Announcer, BUSY};
    use crate::deliveries::DueDelivery;
    use crate::deliveries::lane_names::parse_due_message;

    /// An announcer that gathers for a second, and how many deliveries each of its messages names.
    fn announcer() -> (Announcer, Arc<Mutex<Vec<usize>>>) {
        let published = Arc::<Mutex<Vec<usize>>>::default();
        let messages = Arc::clone(&published);
        let mut announcer = Announcer::new(move |message| {
            let due = parse_due_message(&message.body).unwrap();
            messages.lock().push(due.len());
        });
        announcer.gathering = Duration::from_secs(1);
        (announcer, published)
    }

    fn announce(announcer: &Announcer, number: usize) {
        let due = std::iter::repeat_with(|| DueDelivery {
            id: DeliveryId::generate(),
            lane: "https://engine.example:443 000000000000000000000001".to_owned(),
        });
        announcer.announce(due.take(number), &RequestContext::fresh());
    }

    #[tokio::test]
    async fn deliveries_are_announced_at_once_while_there_are_few() {
        let (announcer, published) = announcer();
        for number in [1, 0, BUSY - 1, 1] {
            announce(&announcer, number);
        }
        assert_eq!(*published.lock(), [1, BUSY - 1, 1]);
    }

    #[tokio::test]
    async fn what_follows_many_deliveries_is_announced_together_after_a_moment() {
        let (announcer, published) = announcer();
        for number in [BUSY, 2, 3] {
            announce(&announcer, number);
        }
        assert_eq!(*published.lock(), [BUSY]);
        eventually("the next message", async || {
            (*published.lock() == [BUSY, 5]).then_some(())
        })
        .await;
        // They were few, so nothing is gathered any more.
        announce(&announcer, 1);
        assert_eq!(*published.lock(), [BUSY, 5, 1]);
    }
}
