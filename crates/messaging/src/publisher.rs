use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt as _};
use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Confirmation, Event, PublisherConfirm};
use serde::Serialize;
use telemetry::Outage;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::connection::{BrokerConnection, BrokerSettings, supervise};
use crate::error::{Error, grace_after, with_timeout};
use crate::message::Message;
use crate::queue::Queue;

/// Messages that wait to be published; more are dropped, and the sweep publishes their rows later.
const BUFFER: usize = 10_000;
/// Messages that are published before confirms are read again.
const BATCH: usize = 256;
/// Unconfirmed messages; publishing pauses at this number.
const MAX_UNCONFIRMED: usize = 2_000;
/// How long publishing and confirms may take once the process stops. Sweeps publish the rows of the other messages.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the depths of the queue and of its dead-letter queue are read while messages are published or wait.
const DEPTH_INTERVAL: Duration = Duration::from_secs(1);
/// After how many of these intervals they are read otherwise. This also detects a dead connection.
const IDLE_INTERVALS: u32 = 5;
/// How long a connection that the broker blocks is kept. Nothing can be sent on it, so its loss might not be noticed.
const MAX_BLOCKED: Duration = Duration::from_secs(10 * 60);

/// Publishes messages to one queue, pipelined and confirmed.
#[derive(Debug, Clone)]
pub struct Publisher {
    queue: Queue,
    outgoing: mpsc::Sender<Message>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    connected: AtomicBool,
    /// Whether the broker accepts no messages, because its memory or its disk is almost full.
    blocked: watch::Sender<bool>,
    depth: AtomicU32,
    dead_letters: AtomicU32,
}

impl Publisher {
    /// A publisher, and the task that must run for it.
    pub fn new(
        settings: BrokerSettings,
        queue: Queue,
        shutdown: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        for outcome in ["confirmed", "dropped", "refused", "returned"] {
            count(queue, outcome, 0);
        }
        blocked_gauge(queue).set(0);
        let (outgoing, incoming) = mpsc::channel(BUFFER);
        let state = Arc::<State>::default();
        let publisher = Self {
            queue,
            outgoing,
            state: Arc::clone(&state),
        };
        let task = async move {
            // One session runs at a time, so the lock is never contended.
            let incoming = Mutex::new(incoming);
            let blocking = Outage::new("the broker accepts no messages because of an alarm");
            let publish = |connection: BrokerConnection| async {
                let mut incoming = incoming.lock().await;
                let channel = &connection.channel;
                let events = connection.events();
                let session = session(channel, queue, &mut incoming, &state, &shutdown);
                let outcome = tokio::select! {
                    outcome = session => outcome,
                    outcome = follow_alarms(events, queue, &state, &blocking) => outcome,
                    () = grace_after(&shutdown, SHUTDOWN_TIMEOUT) => Err(Error::Timeout),
                };
                state.connected.store(false, Ordering::Release);
                state.set_blocked(queue, false);
                connection.close().await;
                outcome
            };
            supervise("publisher", &settings, queue, &shutdown, publish).await;
        };
        (publisher, task)
    }

    /// Queues messages for publishing and returns at once. A message that does not fit the buffer is dropped and counted:
    /// the sweep publishes its row later. So is a transient one, which may be long, while none can be published.
    pub fn send(&self, messages: impl IntoIterator<Item = Message>) {
        let is_connected = self.is_connected();
        for mut message in messages {
            message.context = message.context.published(self.queue.name());
            let may_wait = is_connected || !message.is_transient;
            if !may_wait || self.outgoing.try_send(message).is_err() {
                count(self.queue, "dropped", 1);
            }
        }
    }

    /// Whether messages can be published now: the broker is connected, and no alarm blocks it.
    pub fn is_connected(&self) -> bool {
        self.state.connected.load(Ordering::Acquire) && !*self.state.blocked.borrow()
    }

    /// The number of messages in the queue when it was last read: at most a second ago if there were any or some were
    /// published since, and otherwise at most five.
    pub fn depth(&self) -> u32 {
        self.state.depth.load(Ordering::Acquire)
    }

    /// The number of messages in the dead-letter queue when it was last read, at most five seconds ago.
    pub fn dead_letters(&self) -> u32 {
        self.state.dead_letters.load(Ordering::Acquire)
    }
}

/// A queue of messages about rows that are due, as it was at most five seconds ago.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Queue)]
pub struct QueueStatus {
    /// The queue's name.
    #[schema(example = "user.notifications")]
    name: &'static str,
    /// Whether the service can publish messages: it is connected to the broker, which accepts them. If not, the numbers may be old.
    connected: bool,
    /// How many messages wait for a worker. Of `webhook.due-deliveries` each worker has a queue of its own, and this is always 0.
    #[schema(example = 12)]
    messages: u32,
    /// How many messages no worker could process.
    #[schema(example = 0)]
    dead_letters: u32,
}

impl From<&Publisher> for QueueStatus {
    fn from(publisher: &Publisher) -> Self {
        Self {
            name: publisher.queue.name(),
            connected: publisher.is_connected(),
            messages: publisher.depth(),
            dead_letters: publisher.dead_letters(),
        }
    }
}

impl State {
    fn set_blocked(&self, queue: Queue, blocked: bool) {
        self.blocked.send_replace(blocked);
        blocked_gauge(queue).set(u32::from(blocked));
    }

    /// Reads the depths of a queue, unless the broker blocks the connection meanwhile.
    async fn read_depths(&self, channel: &Channel, queue: Queue) -> Result<(), Error> {
        let mut blocked = self.blocked.subscribe();
        let reading = async {
            let (depth, dead) = (queue.depth(channel), queue.dead_letter_depth(channel));
            self.depth.store(depth.await?, Ordering::Release);
            self.dead_letters.store(dead.await?, Ordering::Release);
            Ok(())
        };
        tokio::select! {
            read = reading => read,
            _ = blocked.wait_for(|blocked| *blocked) => Ok(()),
        }
    }
}

/// Records whether the broker blocks the connection. Returns an error if it does so for very long.
async fn follow_alarms(
    events: impl Stream<Item = Event>,
    queue: Queue,
    state: &State,
    blocking: &Outage,
) -> Result<(), Error> {
    let mut events = pin!(events);
    loop {
        let is_blocked = *state.blocked.borrow();
        let event = tokio::select! {
            Some(event) = events.next() => event,
            () = tokio::time::sleep(MAX_BLOCKED), if is_blocked => return Err(Error::Timeout),
            else => std::future::pending().await,
        };
        match event {
            Event::ConnectionBlocked(reason) => {
                blocking.fail(&reason);
                state.set_blocked(queue, true);
            }
            Event::ConnectionUnblocked => {
                blocking.end();
                state.set_blocked(queue, false);
            }
            Event::Error(error) if is_blocked => return Err(error.into()),
            _ => {}
        }
    }
}

async fn session(
    channel: &Channel,
    queue: Queue,
    incoming: &mut mpsc::Receiver<Message>,
    state: &State,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    with_timeout(channel.confirm_select(ConfirmSelectOptions::default())).await?;
    state.read_depths(channel, queue).await?;
    state.connected.store(true, Ordering::Release);
    let mut unconfirmed = FuturesUnordered::new();
    let (mut batch, mut quiet) = (Vec::with_capacity(BATCH), 0);
    let mut interval = interval_at(Instant::now() + DEPTH_INTERVAL, DEPTH_INTERVAL);
    let mut blocked = state.blocked.subscribe();
    loop {
        shutdown.run_until_cancelled(unblocked(&mut blocked)).await;
        let free = MAX_UNCONFIRMED.saturating_sub(unconfirmed.len()).min(BATCH);
        tokio::select! {
            // Confirms are read before more is published.
            biased;
            _ = blocked.changed() => {}
            Some(confirmed) = unconfirmed.next() => count_confirm(queue, &confirmed?),
            received = incoming.recv_many(&mut batch, free), if free > 0 => {
                if received == 0 {
                    return Ok(());
                }
                quiet = IDLE_INTERVALS;
                for message in batch.drain(..) {
                    let confirm = publish_unblocked(channel, queue, &message, &mut blocked).await?;
                    unconfirmed.extend(confirm.map(with_timeout));
                }
            }
            _ = interval.tick() => {
                quiet += 1;
                if quiet >= IDLE_INTERVALS || state.depth.load(Ordering::Acquire) > 0 {
                    quiet = 0;
                    state.read_depths(channel, queue).await?;
                }
            }
            () = shutdown.cancelled() => break,
        }
    }
    while let Some(confirmed) = unconfirmed.next().await {
        count_confirm(queue, &confirmed?);
    }
    Ok(())
}

/// Waits until the broker blocks the connection no more, and until confirms have arrived whose time is over.
async fn unblocked(blocked: &mut watch::Receiver<bool>) {
    if *blocked.borrow_and_update() {
        // The sender lives as long as the publisher's task.
        let _ = blocked.wait_for(|blocked| !blocked).await;
        tokio::time::sleep(DEPTH_INTERVAL).await;
    }
}

/// Publishes a message unless the broker blocks the connection. Then the message is dropped: the sweep publishes its row
/// later.
async fn publish_unblocked(
    channel: &Channel,
    queue: Queue,
    message: &Message,
    blocked: &mut watch::Receiver<bool>,
) -> Result<Option<PublisherConfirm>, Error> {
    let (body, properties) = (message.body.as_bytes(), message.properties());
    tokio::select! {
        biased;
        _ = blocked.wait_for(|blocked| *blocked) => {
            count(queue, "dropped", 1);
            Ok(None)
        }
        confirm = queue.publish(channel, body, properties) => confirm.map(Some),
    }
}

fn count_confirm(queue: Queue, confirmation: &Confirmation) {
    let outcome = match confirmation {
        Confirmation::Ack(None) | Confirmation::NotRequested => "confirmed",
        Confirmation::Ack(Some(_)) => "returned",
        Confirmation::Nack(_) => "refused",
    };
    count(queue, outcome, 1);
}

fn blocked_gauge(queue: Queue) -> metrics::Gauge {
    metrics::gauge!("broker_blocked", "queue" => queue.name())
}

fn count(queue: Queue, outcome: &'static str, messages: u64) {
    metrics::counter!(
        "messages_published_total",
        "queue" => queue.name(),
        "outcome" => outcome,
    )
    .increment(messages);
}
