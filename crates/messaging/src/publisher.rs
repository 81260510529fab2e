use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Confirmation};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use crate::connection::{BrokerSettings, supervise};
use crate::error::{Error, with_timeout};
use crate::message::Message;
use crate::publish::publish;
use crate::queue::Queue;

/// Messages that wait to be published; more are dropped, and the sweep publishes their rows later.
const BUFFER: usize = 10_000;
/// Messages that are published before confirms are read again.
const BATCH: usize = 256;
/// Unconfirmed messages; publishing pauses at this number.
const MAX_UNCONFIRMED: usize = 2_000;
/// How long publishing and confirms may take once the process stops. Sweeps publish the rows of the other messages.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How often the depth of the queue is read while messages are published or wait.
const DEPTH_INTERVAL: Duration = Duration::from_secs(1);
/// After how many of these intervals it is read otherwise, with that of the dead-letter queue. This also detects a dead
/// connection.
const IDLE_INTERVALS: u32 = 5;

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
            supervise(
                "publisher",
                &settings,
                queue,
                &shutdown,
                |connection| async {
                    let mut incoming = incoming.lock().await;
                    let channel = &connection.channel;
                    let session = session(channel, queue, &mut incoming, &state, &shutdown);
                    let outcome = tokio::select! {
                        outcome = session => outcome,
                        () = grace_after(&shutdown) => Err(Error::Timeout),
                    };
                    state.connected.store(false, Ordering::Release);
                    connection.close().await;
                    outcome
                },
            )
            .await;
        };
        (publisher, task)
    }

    /// Queues messages for publishing and returns at once. A message that does not fit the buffer is
    /// dropped and counted: the sweep publishes its row later.
    pub fn send(&self, messages: impl IntoIterator<Item = Message>) {
        for mut message in messages {
            message.context = message.context.published(self.queue.name());
            if self.outgoing.try_send(message).is_err() {
                count(self.queue, "dropped", 1);
            }
        }
    }

    /// Whether messages can be published now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state.connected.load(Ordering::Acquire)
    }

    /// The number of messages in the queue when it was last read: at most a second ago if there were any or some were
    /// published since, and otherwise at most five.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.state.depth.load(Ordering::Acquire)
    }

    /// The number of messages in the dead-letter queue when it was last read, at most five seconds ago.
    #[must_use]
    pub fn dead_letters(&self) -> u32 {
        self.state.dead_letters.load(Ordering::Acquire)
    }

    /// The queue to which it publishes.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }
}

async fn grace_after(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
}

async fn session(
    channel: &Channel,
    queue: Queue,
    incoming: &mut mpsc::Receiver<Message>,
    state: &State,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    with_timeout(channel.confirm_select(ConfirmSelectOptions::default())).await?;
    let mut check = DepthCheck {
        channel,
        queue,
        has_published: false,
        intervals: 0,
    };
    check.read(state).await?;
    check.read_dead_letters(state).await?;
    state.connected.store(true, Ordering::Release);
    let mut unconfirmed = FuturesUnordered::new();
    let mut batch = Vec::with_capacity(BATCH);
    let mut interval = interval_at(Instant::now() + DEPTH_INTERVAL, DEPTH_INTERVAL);
    loop {
        let free = MAX_UNCONFIRMED.saturating_sub(unconfirmed.len()).min(BATCH);
        tokio::select! {
            // Confirms are read before more is published.
            biased;
            Some(confirmed) = unconfirmed.next() => count_confirm(queue, &confirmed?),
            received = incoming.recv_many(&mut batch, free), if free > 0 => {
                if received == 0 {
                    return Ok(());
                }
                check.has_published = true;
                for message in batch.drain(..) {
                    let (body, properties) = (message.body.as_bytes(), message.properties());
                    let confirm = publish(channel, queue, body, properties).await?;
                    unconfirmed.push(with_timeout(confirm));
                }
            }
            _ = interval.tick() => check.tick(state).await?,
            () = shutdown.cancelled() => break,
        }
    }
    while let Some(confirmed) = unconfirmed.next().await {
        count_confirm(queue, &confirmed?);
    }
    Ok(())
}

/// Reads the depths of a queue as often as they may matter.
struct DepthCheck<'a> {
    channel: &'a Channel,
    queue: Queue,
    has_published: bool,
    intervals: u32,
}

impl DepthCheck<'_> {
    async fn tick(&mut self, state: &State) -> Result<(), Error> {
        self.intervals = (self.intervals + 1) % IDLE_INTERVALS;
        let is_full = self.intervals == 0;
        if is_full || self.has_published || state.depth.load(Ordering::Acquire) > 0 {
            self.read(state).await?;
        }
        if is_full {
            self.read_dead_letters(state).await?;
        }
        Ok(())
    }

    async fn read(&mut self, state: &State) -> Result<(), Error> {
        self.has_published = false;
        let depth = self.queue.depth(self.channel).await?;
        state.depth.store(depth, Ordering::Release);
        Ok(())
    }

    async fn read_dead_letters(&self, state: &State) -> Result<(), Error> {
        let depth = self.queue.dead_letter_depth(self.channel).await?;
        state.dead_letters.store(depth, Ordering::Release);
        Ok(())
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

fn count(queue: Queue, outcome: &'static str, messages: u64) {
    metrics::counter!(
        "messages_published_total",
        "queue" => queue.name(),
        "outcome" => outcome,
    )
    .increment(messages);
}
