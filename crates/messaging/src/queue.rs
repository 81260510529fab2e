use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ErrorKind, PublisherConfirm};

use crate::error::{Error, with_timeout};

/// Messages that a queue holds before it refuses more; the sweep publishes their rows later.
const MAX_LENGTH: i64 = 100_000;
/// Deliveries of one message before it counts as poison and goes to the dead-letter queue.
const DELIVERY_LIMIT: i64 = 20;
/// Listing a dead letter counts as a delivery, and newer brokers drop a message after 20 deliveries.
const DEAD_LETTER_DELIVERY_LIMIT: i64 = 1_000_000;
/// The AMQP 0-9-1 reply code for success.
const REPLY_SUCCESS: u16 = 200;

/// A durable queue with its dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Replicated, and written to disk.
    Quorum,
    /// In the memory of one node.
    Classic,
}

impl Queue {
    /// The queue of this name. Each capability that owns a queue defines it as a constant.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let kind = Kind::Quorum;
        Self { name, kind }
    }

    /// A queue for transient messages, whose loss only costs time.
    #[must_use]
    pub const fn transient(name: &'static str) -> Self {
        let kind = Kind::Classic;
        Self { name, kind }
    }

    /// The queue's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The queue for messages that were delivered too often or could not be parsed.
    #[must_use]
    pub fn dead_letter_name(self) -> String {
        format!("{}.dead", self.name)
    }

    /// Declares the queue and its dead-letter queue; declaring them again changes nothing.
    ///
    /// A queue that an earlier version declared with other arguments keeps them: arguments cannot be
    /// changed, and an upgrade must not stop every process.
    pub(crate) async fn declare(self, connection: &Connection) -> Result<(), Error> {
        let dead = self.dead_letter_name();
        let mut arguments = quorum();
        arguments.insert("x-delivery-limit".into(), DEAD_LETTER_DELIVERY_LIMIT.into());
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("drop-head"));
        declare(connection, &dead, arguments).await?;

        let mut arguments = match self.kind {
            Kind::Quorum => quorum(),
            Kind::Classic => FieldTable::default(),
        };
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("reject-publish"));
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
        if self.kind == Kind::Quorum {
            arguments.insert("x-delivery-limit".into(), DELIVERY_LIMIT.into());
            arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        }
        declare(connection, self.name, arguments).await
    }

    /// Publishes a message on a channel in confirm mode. The confirm is still to be awaited.
    pub(crate) async fn publish(
        self,
        channel: &Channel,
        body: &[u8],
        properties: BasicProperties,
    ) -> Result<PublisherConfirm, Error> {
        // Without `mandatory` the broker confirms and drops a message that it cannot route.
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let name = self.name.into();
        with_timeout(channel.basic_publish("".into(), name, options, body, properties)).await
    }

    /// The number of ready messages. The request also checks that the channel works.
    pub(crate) async fn depth(self, channel: &Channel) -> Result<u32, Error> {
        depth(channel, self.name.to_owned()).await
    }

    /// The number of messages in the dead-letter queue.
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
    let depth = with_timeout(declared).await?.message_count();
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
    // The broker closes the channel on which it refuses a declaration.
    let channel = with_timeout(connection.create_channel()).await?;
    let declared = channel.queue_declare(name.into(), QueueDeclareOptions::durable(), arguments);
    match with_timeout(declared).await {
        Ok(_) => with_timeout(channel.close(REPLY_SUCCESS, "done".into())).await,
        Err(Error::Broker(error)) if is_precondition_failed(&error) => {
            tracing::warn!(
                queue = name,
                "the queue exists with other arguments and keeps them"
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
