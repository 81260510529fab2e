use lapin::options::QueueDeclareOptions;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ErrorKind};

use crate::connection::{Error, within};

/// Wake-ups that a queue holds before it refuses more; their rows come due again by themselves.
const MAX_LENGTH: i64 = 100_000;
/// Deliveries of one message before it counts as poison and goes to the dead-letter queue.
const DELIVERY_LIMIT: i64 = 20;
/// What AMQP 0-9-1 answers to a success.
const REPLY_SUCCESS: u16 = 200;
/// Looking at a dead letter counts as a delivery, and newer brokers drop what was delivered twenty times.
const LOOKS_LIMIT: i64 = 1_000_000;

/// A durable quorum queue with its dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue(&'static str);

impl Queue {
    /// Decisions on their way to webhooks.
    pub const WEBHOOK_DELIVERIES: Self = Self("webhook.deliveries");
    /// Users that are being deleted.
    pub const USER_DELETIONS: Self = Self("user.deletions");
    /// Messages to users.
    pub const USER_NOTIFICATIONS: Self = Self("user.notifications");

    /// The queue's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0
    }

    /// The queue that takes what was delivered too often or could not be read.
    #[must_use]
    pub fn dead_letter_name(self) -> String {
        format!("{}.dead", self.0)
    }

    /// Declares the queue and its dead-letter queue; doing it again changes nothing.
    ///
    /// A queue that an earlier version declared with other arguments stays as it is: arguments cannot be
    /// changed, and an upgrade must not stop everything.
    pub(crate) async fn declare(self, connection: &Connection) -> Result<(), Error> {
        let dead = self.dead_letter_name();
        let mut arguments = quorum();
        arguments.insert("x-delivery-limit".into(), LOOKS_LIMIT.into());
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("drop-head"));
        declare(connection, &dead, arguments).await?;

        let mut arguments = quorum();
        arguments.insert("x-delivery-limit".into(), DELIVERY_LIMIT.into());
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("reject-publish"));
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
        arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        declare(connection, self.0, arguments).await
    }

    /// How many messages wait in it; asking also shows that the channel works.
    pub(crate) async fn depth(self, channel: &Channel) -> Result<u32, Error> {
        depth(channel, self.0.to_owned()).await
    }

    /// How many messages lie in its dead-letter queue.
    pub(crate) async fn dead_letter_depth(self, channel: &Channel) -> Result<u32, Error> {
        depth(channel, self.dead_letter_name()).await
    }
}

async fn depth(channel: &Channel, queue: String) -> Result<u32, Error> {
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default());
    let depth = within(declared).await?.message_count();
    metrics::gauge!("queue_messages", "queue" => queue).set(depth);
    Ok(depth)
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

async fn declare(connection: &Connection, name: &str, arguments: FieldTable) -> Result<(), Error> {
    // The broker closes the channel on which it refuses something.
    let channel = within(connection.create_channel()).await?;
    let declared = channel.queue_declare(name.into(), QueueDeclareOptions::durable(), arguments);
    match within(declared).await {
        Ok(_) => within(channel.close(REPLY_SUCCESS, "done".into())).await,
        Err(Error::Broker(error)) if is_precondition_failed(&error) => {
            tracing::warn!(
                queue = name,
                "the queue exists with other arguments, and keeps them"
            );
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn is_precondition_failed(error: &lapin::Error) -> bool {
    let refused = AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED);
    matches!(error.kind(), ErrorKind::ProtocolError(error) if *error.kind() == refused)
}
