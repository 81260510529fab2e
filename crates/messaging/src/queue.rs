use lapin::options::{
    BasicPublishOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ErrorKind, ExchangeKind, PublisherConfirm};

use crate::error::{Error, with_timeout};

/// Messages that a queue holds before it refuses more; the sweep publishes their rows later.
const MAX_LENGTH: i64 = 100_000;
/// Deliveries of one message before it counts as poison and goes to the dead-letter queue.
const DELIVERY_LIMIT: i64 = 20;
/// Listing a dead letter counts as a delivery, and newer brokers drop a message after 20 deliveries.
const DEAD_LETTER_DELIVERY_LIMIT: i64 = 1_000_000;
/// The AMQP 0-9-1 reply code for success.
const REPLY_SUCCESS: u16 = 200;

/// A durable queue, or one for each consumer, with its dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    name: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Replicated, and written to disk.
    Quorum,
    /// One for each consumer, which gets every message while it is connected, in the memory of one node.
    Broadcast,
}

impl Queue {
    /// The queue of this name. Each capability that owns a queue defines it as a constant.
    pub const fn new(name: &'static str) -> Self {
        let kind = Kind::Quorum;
        Self { name, kind }
    }

    /// Messages for every consumer, whose loss only costs time. Those that are published while no consumer is connected
    /// are lost.
    pub const fn broadcast(name: &'static str) -> Self {
        let kind = Kind::Broadcast;
        Self { name, kind }
    }

    /// The queue's name.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// The queue for messages that were delivered too often or could not be parsed.
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

        if self.kind == Kind::Broadcast {
            return declare_exchange(connection, self.name).await;
        }
        let mut arguments = quorum();
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("reject-publish"));
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
        arguments.insert("x-delivery-limit".into(), DELIVERY_LIMIT.into());
        arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        declare(connection, self.name, arguments).await
    }

    /// Publishes a message on a channel in confirm mode. The confirm is still to be awaited.
    pub(crate) async fn publish(
        self,
        channel: &Channel,
        body: &[u8],
        properties: BasicProperties,
    ) -> Result<PublisherConfirm, Error> {
        // Without `mandatory` the broker confirms and drops a message that it cannot route. While no consumer is there,
        // that is what should become of a broadcast.
        let options = BasicPublishOptions {
            mandatory: self.kind == Kind::Quorum,
            ..BasicPublishOptions::default()
        };
        let (exchange, key) = match self.kind {
            Kind::Quorum => ("", self.name),
            Kind::Broadcast => (self.name, ""),
        };
        let publish = channel.basic_publish(exchange.into(), key.into(), options, body, properties);
        with_timeout(publish).await
    }

    /// The name of the queue from which a consumer on this channel gets messages. One of its own ends with the connection.
    pub(crate) async fn source(self, channel: &Channel) -> Result<String, Error> {
        if self.kind == Kind::Quorum {
            return Ok(self.name.to_owned());
        }
        let mut arguments = FieldTable::default();
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        let dead = self.dead_letter_name();
        arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
        let own = QueueDeclareOptions::exclusive().auto_delete();
        let declared = with_timeout(channel.queue_declare("".into(), own, arguments)).await?;
        let name = declared.name().to_string();
        self.bind(channel, &name).await?;
        Ok(name)
    }

    /// Makes sure that a consumer's [source](Self::source) gets messages. A broadcast whose exchange was deleted, and declared
    /// again by a publisher, has lost it.
    pub(crate) async fn bind(self, channel: &Channel, source: &str) -> Result<(), Error> {
        if self.kind == Kind::Quorum {
            return Ok(());
        }
        let bound = channel.queue_bind(
            source.into(),
            self.name.into(),
            "".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        );
        with_timeout(bound).await
    }

    /// The number of ready messages in the queue; 0 if each consumer has one. The request also checks that the channel
    /// works.
    pub(crate) async fn depth(self, channel: &Channel) -> Result<u32, Error> {
        match self.kind {
            Kind::Quorum => self.depth_of(channel, self.name).await,
            Kind::Broadcast => self.dead_letter_depth(channel).await.map(|_| 0),
        }
    }

    /// The number of ready messages in a consumer's [source](Self::source).
    pub(crate) async fn depth_of(self, channel: &Channel, source: &str) -> Result<u32, Error> {
        let depth = depth(channel, source).await?;
        metrics::gauge!("queue_messages", "queue" => self.name).set(depth);
        Ok(depth)
    }

    pub(crate) async fn dead_letter_depth(self, channel: &Channel) -> Result<u32, Error> {
        let name = self.dead_letter_name();
        let depth = depth(channel, &name).await?;
        metrics::gauge!("queue_messages", "queue" => name).set(depth);
        Ok(depth)
    }
}

async fn depth(channel: &Channel, queue: &str) -> Result<u32, Error> {
    Ok(with_timeout(declare_passively(channel, queue))
        .await?
        .message_count())
}

/// Fails unless the queue exists.
async fn declare_passively(channel: &Channel, queue: &str) -> lapin::Result<lapin::Queue> {
    let passive = QueueDeclareOptions::default().passive();
    channel
        .queue_declare(queue.into(), passive, FieldTable::default())
        .await
}

async fn declare_exchange(connection: &Connection, name: &str) -> Result<(), Error> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    on_new_channel(connection, async |channel| {
        let fanout = ExchangeKind::Fanout;
        channel
            .exchange_declare(name.into(), fanout, options, FieldTable::default())
            .await
    })
    .await
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
    let declared = on_new_channel(connection, async |channel| {
        let options = QueueDeclareOptions::durable();
        channel.queue_declare(name.into(), options, arguments).await
    });
    match declared.await {
        Err(Error::Broker(error)) if is_precondition_failed(&error) => {
            // A vhost that may have no more queues refuses one in the same way.
            let existing = on_new_channel(connection, async |channel| {
                declare_passively(channel, name).await
            });
            existing.await.map_err(|_| Error::Broker(error))?;
            tracing::warn!(
                queue = name,
                "the queue exists with other arguments and keeps them"
            );
            Ok(())
        }
        declared => declared,
    }
}

/// Makes a request on a channel of its own, because the broker closes the channel on which it refuses one.
async fn on_new_channel<T>(
    connection: &Connection,
    request: impl AsyncFnOnce(&Channel) -> lapin::Result<T>,
) -> Result<(), Error> {
    let channel = with_timeout(connection.create_channel()).await?;
    with_timeout(request(&channel)).await?;
    with_timeout(channel.close(REPLY_SUCCESS, "done".into())).await
}

fn is_precondition_failed(error: &lapin::Error) -> bool {
    let refused = AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED);
    matches!(error.kind(), ErrorKind::ProtocolError(error) if *error.kind() == refused)
}
