use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions,
};
use lapin::types::FieldTable;
use telemetry::SpanKind;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{BrokerSettings, supervise};
use crate::error::{Error, with_shutdown, with_timeout};
use crate::message::Message;
use crate::queue::Queue;

const CONSUMER_TAG: &str = "countersign";
/// How often a connection is checked: a consumer is not always told that the broker stopped, or that it gets nothing more.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(5);

/// How a delivery is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The row was processed, or needs no work: acknowledge.
    Done,
    /// The row could not be read: requeue the message.
    Requeue,
    /// The message is invalid: send it to the dead-letter queue.
    Reject,
}

/// How a queue is consumed.
#[derive(Debug, Clone)]
pub struct ConsumerConfig {
    settings: BrokerSettings,
    queue: Queue,
    prefetch: u16,
    /// True while messages can arrive; for readiness.
    pub connected: Arc<AtomicBool>,
}

impl ConsumerConfig {
    /// The configuration of a consumer that is not connected yet. It has at most `prefetch` unacknowledged messages.
    pub fn new(settings: BrokerSettings, queue: Queue, prefetch: u16) -> Self {
        Self {
            settings,
            queue,
            prefetch,
            connected: Arc::default(),
        }
    }
}

type Handle = Arc<dyn Fn(Message) -> BoxFuture<'static, Disposition> + Send + Sync>;

/// Passes each message to `handle`, at most `prefetch` at once, and settles it as `handle` says. A message whose
/// handler panics is requeued, and goes to the dead-letter queue if it panics again: some brokers would deliver it
/// forever. Its row does not depend on it.
///
/// Returns after `shutdown` was cancelled and every message in flight is settled. While the broker is
/// unavailable it keeps reconnecting.
pub async fn consume<R: Future<Output = Disposition> + Send + 'static>(
    config: ConsumerConfig,
    shutdown: CancellationToken,
    handle: impl Fn(Message) -> R + Send + Sync + 'static,
) {
    let handle: Handle = Arc::new(move |message| handle(message).boxed());
    let (queue, settings) = (config.queue, config.settings.clone());
    supervise("consumer", &settings, queue, &shutdown, |connection| {
        let (config, shutdown, handle) = (config.clone(), shutdown.clone(), handle.clone());
        async move {
            let tasks = TaskTracker::new();
            let outcome = session(&connection.channel, &config, &tasks, &shutdown, handle).await;
            config.connected.store(false, Ordering::Release);
            tasks.close();
            tasks.wait().await;
            connection.close().await;
            outcome
        }
    })
    .await;
}

async fn session(
    channel: &Channel,
    config: &ConsumerConfig,
    tasks: &TaskTracker,
    shutdown: &CancellationToken,
    handle: Handle,
) -> Result<(), Error> {
    let queue = config.queue;
    let limited = channel.basic_qos(config.prefetch, BasicQosOptions::default());
    with_shutdown(shutdown, with_timeout(limited)).await?;
    let source = with_shutdown(shutdown, queue.source(channel)).await?;
    let consumer = channel.basic_consume(
        source.as_str().into(),
        CONSUMER_TAG.into(),
        BasicConsumeOptions::default(),
        FieldTable::default(),
    );
    let mut deliveries = with_shutdown(shutdown, with_timeout(consumer)).await?;
    config.connected.store(true, Ordering::Release);
    let mut liveness = tokio::time::interval(LIVENESS_INTERVAL);
    loop {
        tokio::select! {
            delivery = deliveries.next() => match delivery {
                Some(delivery) => {
                    tasks.spawn(process(queue, delivery?, handle.clone(), shutdown.clone()));
                }
                None => return Ok(()),
            },
            _ = liveness.tick() => {
                with_shutdown(shutdown, queue.depth_of(channel, &source)).await?;
                with_shutdown(shutdown, queue.bind(channel, &source)).await?;
            }
            () = shutdown.cancelled() => {
                let options = BasicCancelOptions::default();
                let cancelled = channel.basic_cancel(CONSUMER_TAG.into(), options);
                return with_shutdown(shutdown, with_timeout(cancelled)).await;
            }
        }
    }
}

async fn process(queue: Queue, delivery: Delivery, handle: Handle, shutdown: CancellationToken) {
    let disposition = match Message::parse(&delivery) {
        Some(message) => {
            let (context, id) = (message.context.clone(), message.body.clone());
            let handling = AssertUnwindSafe(async move { handle(message).await }).catch_unwind();
            let handled = context
                .scope(SpanKind::Consumer, queue.name(), handling)
                .await;
            handled.unwrap_or_else(|_| after_panic(queue, &id, delivery.redelivered))
        }
        None => Disposition::Reject,
    };
    let settling = with_timeout(settle(&delivery, disposition));
    if let Err(error) = with_shutdown(&shutdown, settling).await {
        // The broker delivers the message again; its row is done by then, and it is acknowledged.
        tracing::debug!(error = ?error, queue = queue.name(), "a message could not be settled");
    }
}

async fn settle(delivery: &Delivery, disposition: Disposition) -> Result<bool, lapin::Error> {
    if disposition == Disposition::Done {
        return delivery.ack(BasicAckOptions::default()).await;
    }
    let options = BasicNackOptions {
        requeue: disposition == Disposition::Requeue,
        ..BasicNackOptions::default()
    };
    delivery.nack(options).await
}

fn after_panic(queue: Queue, id: &str, redelivered: bool) -> Disposition {
    tracing::error!(
        queue = queue.name(),
        job.id = id,
        "the handler of a message panicked"
    );
    if redelivered {
        Disposition::Reject
    } else {
        Disposition::Requeue
    }
}
