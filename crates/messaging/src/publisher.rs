use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Confirmation, PublisherConfirm};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::connection::{Link, supervise, within};
use crate::{BrokerSettings, Error, Message, Queue};

/// Messages that wait to be sent; more are dropped, and their rows come due again.
const BUFFER: usize = 10_000;
/// Messages that are sent without waiting in between.
const BATCH: usize = 256;
/// Confirms that are waited for at once; more publishing waits for one of them.
const UNCONFIRMED: usize = 2_000;
/// How often the depth of the queue is read, which also notices a dead connection.
const DEPTH_PAUSE: Duration = Duration::from_secs(1);

/// Sends wake-ups to one queue, pipelined and confirmed.
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
}

impl Publisher {
    /// A publisher, and the task that must run for it.
    pub fn new(
        settings: BrokerSettings,
        queue: Queue,
        shutdown: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (outgoing, incoming) = mpsc::channel(BUFFER);
        let state = Arc::<State>::default();
        let publisher = Self {
            queue,
            outgoing,
            state: Arc::clone(&state),
        };
        let task = async move {
            // One session runs at a time, so nobody waits for this lock.
            let incoming = Mutex::new(incoming);
            supervise("publisher", &settings, &[queue], &shutdown, |link| async {
                let mut incoming = incoming.lock().await;
                let outcome = session(&link, queue, &mut incoming, &state, &shutdown).await;
                state.connected.store(false, Ordering::Release);
                link.close().await;
                outcome
            })
            .await;
        };
        (publisher, task)
    }

    /// Hands messages over for sending and returns at once. What cannot be sent is dropped and counted:
    /// the relay finds its row.
    pub fn send(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            if self.outgoing.try_send(message).is_err() {
                count(self.queue, "dropped");
            }
        }
    }

    /// Whether messages can be sent now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state.connected.load(Ordering::Acquire)
    }

    /// How many messages waited in the queue when it was last read, at most a second ago.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.state.depth.load(Ordering::Acquire)
    }
}

async fn session(
    link: &Link,
    queue: Queue,
    incoming: &mut mpsc::Receiver<Message>,
    state: &State,
    shutdown: &CancellationToken,
) -> Result<(), Error> {
    let channel = &link.channel;
    within(channel.confirm_select(ConfirmSelectOptions::default())).await?;
    state
        .depth
        .store(queue.depth(channel).await?, Ordering::Release);
    state.connected.store(true, Ordering::Release);
    let mut unconfirmed = FuturesUnordered::new();
    let mut batch = Vec::with_capacity(BATCH);
    let mut depth = tokio::time::interval(DEPTH_PAUSE);
    loop {
        let room = UNCONFIRMED.saturating_sub(unconfirmed.len()).min(BATCH);
        tokio::select! {
            // What was confirmed makes room before more is sent.
            biased;
            Some(confirmed) = unconfirmed.next() => confirm(queue, &confirmed?),
            received = incoming.recv_many(&mut batch, room), if room > 0 => {
                if received == 0 {
                    return Ok(());
                }
                for message in batch.drain(..) {
                    unconfirmed.push(within(publish(link, queue, &message).await?));
                }
            }
            _ = depth.tick() => {
                state.depth.store(queue.depth(channel).await?, Ordering::Release);
                queue.dead_letter_depth(channel).await?;
            }
            () = shutdown.cancelled() => break,
        }
    }
    while let Some(confirmed) = unconfirmed.next().await {
        confirm(queue, &confirmed?);
    }
    Ok(())
}

async fn publish(link: &Link, queue: Queue, message: &Message) -> Result<PublisherConfirm, Error> {
    // Without `mandatory` the broker confirms what it could not route, and drops it.
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let published = link.channel.basic_publish(
        "".into(),
        queue.name().into(),
        options,
        message.id.as_bytes(),
        message.properties(),
    );
    within(published).await
}

fn confirm(queue: Queue, confirmation: &Confirmation) {
    let outcome = match confirmation {
        Confirmation::Ack(None) | Confirmation::NotRequested => "confirmed",
        Confirmation::Ack(Some(_)) => "returned",
        Confirmation::Nack(_) => "refused",
    };
    count(queue, outcome);
}

fn count(queue: Queue, outcome: &'static str) {
    metrics::counter!(
        "messages_published_total",
        "queue" => queue.name(),
        "outcome" => outcome,
    )
    .increment(1);
}
