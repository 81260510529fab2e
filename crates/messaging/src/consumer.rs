use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::FieldTable;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Link, supervise, within};
use crate::{BrokerSettings, Error, Message, Queue};

const TAG: &str = "countersign";
/// How often a silent connection is asked whether it lives: a consumer does not always learn of a stop.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(5);

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The row was acted upon, or needs nothing: acknowledge.
    Done,
    /// The row could not be read just now: deliver the message again.
    Requeue,
    /// The message makes no sense: to the dead-letter queue.
    Reject,
}

/// How a queue is consumed.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    /// The broker.
    pub settings: BrokerSettings,
    /// The queue.
    pub queue: Queue,
    /// Messages in flight at once.
    pub prefetch: u16,
    /// True while messages can arrive; for readiness.
    pub connected: Arc<AtomicBool>,
}

impl ConsumerConfig {
    /// How a queue is consumed, before it is.
    #[must_use]
    pub fn new(settings: BrokerSettings, queue: Queue, prefetch: u16) -> Self {
        Self {
            settings,
            queue,
            prefetch,
            connected: Arc::default(),
        }
    }
}

/// Hands each message to `handle`, at most `prefetch` at once, and settles it by what that says.
///
/// Returns after `shutdown` was cancelled and every message in flight is settled. While the
/// broker is away it goes on trying.
pub async fn consume<H, R>(consumption: ConsumerConfig, shutdown: CancellationToken, handle: H)
where
    H: Fn(Message) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Disposition> + Send + 'static,
{
    let queue = consumption.queue;
    let settings = consumption.settings.clone();
    supervise("consumer", &settings, &[queue], &shutdown, |link| {
        let (consumption, shutdown, handle) =
            (consumption.clone(), shutdown.clone(), handle.clone());
        async move {
            let tasks = TaskTracker::new();
            let outcome = session(&link, &consumption, &tasks, &shutdown, handle).await;
            consumption.connected.store(false, Ordering::Release);
            tasks.close();
            tasks.wait().await;
            link.close().await;
            outcome
        }
    })
    .await;
}

async fn session<H, R>(
    link: &Link,
    consumption: &ConsumerConfig,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
    handle: H,
) -> Result<(), Error>
where
    H: Fn(Message) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Disposition> + Send + 'static,
{
    let (channel, queue) = (&link.channel, consumption.queue);
    within(channel.basic_qos(consumption.prefetch, BasicQosOptions::default())).await?;
    let options = BasicConsumeOptions::default();
    let consumer = channel.basic_consume(
        queue.name().into(),
        TAG.into(),
        options,
        FieldTable::default(),
    );
    let mut deliveries = within(consumer).await?;
    consumption.connected.store(true, Ordering::Release);
    let mut pulse = tokio::time::interval(LIVENESS_INTERVAL);
    loop {
        tokio::select! {
            delivery = deliveries.next() => match delivery {
                Some(delivery) => {
                    tasks.spawn(work(queue, delivery?, handle.clone()));
                }
                None => return Ok(()),
            },
            _ = pulse.tick() => {
                queue.depth(channel).await?;
            }
            () = shutdown.cancelled() => {
                return within(channel.basic_cancel(TAG.into(), BasicCancelOptions::default())).await;
            }
        }
    }
}

async fn work<H, R>(queue: Queue, delivery: Delivery, handle: H)
where
    H: Fn(Message) -> R,
    R: Future<Output = Disposition>,
{
    let disposition = match Message::read(&delivery) {
        Some(message) => {
            let context = message.context.clone();
            context.scope(queue.name(), handle(message)).await
        }
        None => Disposition::Reject,
    };
    let settled = match disposition {
        Disposition::Done => within(delivery.ack(BasicAckOptions::default())).await,
        Disposition::Requeue => within(delivery.nack(requeue(true))).await,
        Disposition::Reject => within(delivery.nack(requeue(false))).await,
    };
    if let Err(error) = settled {
        // The message comes again, finds its row done, and is acknowledged then.
        tracing::debug!(error = ?error, queue = queue.name(), "a message could not be settled");
    }
}

fn requeue(requeue: bool) -> BasicNackOptions {
    BasicNackOptions {
        requeue,
        ..BasicNackOptions::default()
    }
}
