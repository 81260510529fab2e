use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messaging::Publisher;
use parking_lot::Mutex;
use telemetry::RequestContext;
use tokio::runtime::Handle;

use crate::deliveries::{DueDelivery, due_message};

/// After a message with so many deliveries, others are gathered for a moment.
const BUSY: usize = 8;
/// How long deliveries are gathered. A message costs the broker and the worker as much as fifteen deliveries.
const GATHERING: Duration = Duration::from_millis(10);

/// Tells the workers about deliveries that were committed: at once, or under load together with those of the next moment.
///
/// What is lost when the process ends costs time only, like a lost message: workers also look for deliveries.
#[derive(Debug, Clone)]
pub(crate) struct Announcer {
    publisher: Publisher,
    gathered: Arc<Mutex<Gathered>>,
}

#[derive(Debug, Default)]
struct Gathered {
    due: Vec<DueDelivery>,
    /// The request that caused the first of them.
    cause: Option<RequestContext>,
    /// Until when others are gathered.
    until: Option<Instant>,
    /// Whether a task waits for that time.
    is_awaited: bool,
}

impl Announcer {
    pub(crate) fn new(publisher: Publisher) -> Self {
        Self {
            publisher,
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
        if gathered.due.is_empty() {
            return;
        }
        gathered.cause.get_or_insert_with(|| cause.clone());
        let now = Instant::now();
        match gathered.until.filter(|until| *until > now) {
            None => self.publish(&mut gathered, now),
            Some(_) if gathered.is_awaited => {}
            Some(until) => {
                gathered.is_awaited = true;
                let announcer = self.clone();
                Handle::current().spawn(async move {
                    tokio::time::sleep_until(until.into()).await;
                    let mut gathered = announcer.gathered.lock();
                    gathered.is_awaited = false;
                    announcer.publish(&mut gathered, Instant::now());
                });
            }
        }
    }

    fn publish(&self, gathered: &mut Gathered, now: Instant) {
        let due = take(&mut gathered.due);
        let is_busy = due.len() >= BUSY;
        gathered.until = is_busy.then(|| now + GATHERING);
        if let Some(cause) = gathered.cause.take() {
            self.publisher.send(due_message(&due, cause));
        }
    }
}
