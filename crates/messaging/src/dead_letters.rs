use lapin::Confirmation;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions, ConfirmSelectOptions};
use lapin::types::AMQPValue;
use serde::Serialize;

use crate::connection::{BrokerConnection, BrokerSettings};
use crate::error::{Error, with_timeout};
use crate::message::Message;
use crate::queue::Queue;

/// Characters of an identifier that are shown; valid ones are shorter.
const MAX_ID_LENGTH: usize = 64;

/// A message that was delivered too often or could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The identifier of its row, or the beginning of the body if that is something else; without control
    /// characters.
    pub id: String,
    /// Why it was dead-lettered, in the broker's terms: `delivery_limit`, `rejected`, `maxlen`.
    pub reason: String,
    /// When it was dead-lettered, in seconds since 1970.
    pub died: Option<u64>,
    /// The request that caused it.
    pub request_id: Option<String>,
}

/// The dead-letter queue of a queue, for operators.
///
/// The row of a dead letter does not depend on it: the sweep finds due rows in any case. A dead letter
/// is evidence of a bug or an outage, and may be discarded once that is understood.
pub struct DeadLetters {
    connection: BrokerConnection,
    queue: Queue,
}

impl DeadLetters {
    /// Connects to the broker and declares the queues.
    ///
    /// # Errors
    /// The broker is unavailable or refuses.
    pub async fn open(settings: &BrokerSettings, queue: Queue) -> Result<Self, Error> {
        let connection = BrokerConnection::open(settings, queue).await?;
        let options = ConfirmSelectOptions::default();
        with_timeout(connection.channel.confirm_select(options)).await?;
        Ok(Self { connection, queue })
    }

    /// The dead-letter queue's name.
    pub fn name(&self) -> String {
        self.queue.dead_letter_name()
    }

    /// The number of dead letters.
    ///
    /// # Errors
    /// The broker is unavailable.
    pub async fn depth(&self) -> Result<u32, Error> {
        self.queue.dead_letter_depth(&self.connection.channel).await
    }

    /// Lists the first `limit` dead letters and leaves them in the queue.
    ///
    /// # Errors
    /// The broker is unavailable.
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let (mut found, mut unacknowledged) = (Vec::new(), Vec::new());
        // Requeued after all are read: a message that is requeued at once would be delivered next again.
        while unacknowledged.len() < limit
            && let Some(message) = self.next().await?
        {
            found.push(describe(&message.delivery));
            unacknowledged.push(message.delivery);
        }
        for delivery in unacknowledged {
            let requeue = BasicNackOptions {
                requeue: true,
                ..BasicNackOptions::default()
            };
            with_timeout(delivery.nack(requeue)).await?;
        }
        Ok(found)
    }

    /// Publishes the first `limit` dead letters to their queue again and returns how many. Each is
    /// removed after the broker has confirmed its copy: a failure in between leaves both, which does no
    /// harm.
    ///
    /// # Errors
    /// The broker is unavailable, or refuses a copy because the queue is full.
    pub async fn replay(&self, limit: usize) -> Result<usize, Error> {
        self.remove(limit, async |delivery| self.publish_copy(delivery).await)
            .await
    }

    /// Removes the first `limit` dead letters and returns how many.
    ///
    /// # Errors
    /// The broker is unavailable.
    pub async fn discard(&self, limit: usize) -> Result<usize, Error> {
        self.remove(limit, async |_| Ok(())).await
    }

    /// Removes each of the first `limit` dead letters after `prepare`, and returns how many.
    async fn remove(
        &self,
        limit: usize,
        prepare: impl AsyncFn(&Delivery) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let mut removed = 0;
        while removed < limit
            && let Some(message) = self.next().await?
        {
            prepare(&message.delivery).await?;
            with_timeout(message.delivery.ack(BasicAckOptions::default())).await?;
            removed += 1;
        }
        Ok(removed)
    }

    async fn publish_copy(&self, delivery: &Delivery) -> Result<(), Error> {
        // Only the request's context is copied: the other headers count the deliveries so far.
        let properties = Message::parse(delivery).map(|message| message.properties());
        let (channel, properties) = (&self.connection.channel, properties.unwrap_or_default());
        let publishing = self.queue.publish(channel, &delivery.data, properties);
        match with_timeout(publishing.await?).await? {
            Confirmation::Ack(None) | Confirmation::NotRequested => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(_) => Err(Error::Refused),
        }
    }

    async fn next(&self) -> Result<Option<BasicGetMessage>, Error> {
        let name = self.queue.dead_letter_name();
        let channel = &self.connection.channel;
        with_timeout(channel.basic_get(name.into(), BasicGetOptions::default())).await
    }

    /// Closes the connection; listed messages stay in the queue.
    pub async fn close(self) {
        self.connection.close().await;
    }
}

fn describe(delivery: &Delivery) -> DeadLetter {
    let context = Message::parse(delivery).map(|message| message.context);
    let shown = String::from_utf8_lossy(&delivery.data);
    let shown = shown.chars().filter(|c| !c.is_control());
    let reason = death(delivery, "reason").and_then(AMQPValue::as_long_string);
    DeadLetter {
        id: shown.take(MAX_ID_LENGTH).collect(),
        reason: reason.map_or_else(|| "unknown".to_owned(), ToString::to_string),
        died: death(delivery, "time").and_then(AMQPValue::as_timestamp),
        request_id: context.map(|context| context.request_id),
    }
}

/// A field of the newest entry of `x-death`, the header in which the broker records dead-lettering.
fn death<'a>(delivery: &'a Delivery, field: &str) -> Option<&'a AMQPValue> {
    let headers = delivery.properties.headers().as_ref()?.inner();
    let deaths = headers.get("x-death")?.as_array()?;
    let newest = deaths.as_slice().first()?.as_field_table()?;
    newest.inner().get(field)
}
