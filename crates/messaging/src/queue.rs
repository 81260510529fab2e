use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::connection::{Error, within};

/// Wake-ups that a queue holds before it refuses more; their rows come due again by themselves.
const MAX_LENGTH: i64 = 100_000;
/// Deliveries of one message before it counts as poison and goes to the dead-letter queue.
const DELIVERY_LIMIT: i64 = 20;

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
    pub(crate) async fn declare(self, channel: &Channel) -> Result<(), Error> {
        let dead = self.dead_letter_name();
        let mut arguments = quorum();
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("drop-head"));
        declare(channel, dead.clone().into(), arguments).await?;

        let mut arguments = quorum();
        arguments.insert("x-delivery-limit".into(), DELIVERY_LIMIT.into());
        arguments.insert("x-max-length".into(), MAX_LENGTH.into());
        arguments.insert("x-overflow".into(), text("reject-publish"));
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
        arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        declare(channel, self.0.into(), arguments).await
    }

    /// How many messages wait in it; asking also shows that the channel works.
    pub(crate) async fn depth(self, channel: &Channel) -> Result<u32, Error> {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let declared = channel.queue_declare(self.0.into(), passive, FieldTable::default());
        let depth = within(declared).await?.message_count();
        metrics::gauge!("queue_messages", "queue" => self.0).set(depth);
        Ok(depth)
    }
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

async fn declare(channel: &Channel, name: ShortString, arguments: FieldTable) -> Result<(), Error> {
    let options = QueueDeclareOptions::durable();
    within(channel.queue_declare(name, options, arguments)).await?;
    Ok(())
}
