use lapin::Confirmation;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions,
};
use lapin::types::AMQPValue;

use crate::connection::{Link, within};
use crate::{BrokerSettings, Error, Message, Queue};

/// Characters of an identifier that are shown; ours are shorter.
const SHOWN: usize = 64;

/// A message that was delivered too often, or that nobody could read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The identifier of its row, or the beginning of whatever stands in its place; without control
    /// characters.
    pub id: String,
    /// Why it is here, in the broker's words: `delivery_limit`, `rejected`, `maxlen`.
    pub reason: String,
    /// When it came here, in seconds since 1970.
    pub died: Option<u64>,
    /// The request that caused it.
    pub request_id: Option<String>,
}

/// The dead-letter queue of a queue, for the operator who looks into it.
///
/// Messages are only wake-ups: a row is found by the sweeps whether its message lies here or not. So what
/// lies here tells of a fault, and it may be discarded once that is understood.
pub struct DeadLetters {
    link: Link,
    queue: Queue,
}

impl DeadLetters {
    /// Connects to the broker; the queues exist afterwards.
    ///
    /// # Errors
    /// The broker cannot be reached, or refuses.
    pub async fn open(settings: &BrokerSettings, queue: Queue) -> Result<Self, Error> {
        let link = Link::open(settings, &[queue]).await?;
        let confirmed = link.channel.confirm_select(ConfirmSelectOptions::default());
        within(confirmed).await?;
        Ok(Self { link, queue })
    }

    /// The dead-letter queue's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.queue.dead_letter_name()
    }

    /// How many there are.
    ///
    /// # Errors
    /// The broker is away.
    pub async fn depth(&self) -> Result<u32, Error> {
        self.queue.dead_letter_depth(&self.link.channel).await
    }

    /// Looks at the first `limit` ones, and leaves them there.
    ///
    /// # Errors
    /// The broker is away.
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let (mut found, mut held) = (Vec::new(), Vec::new());
        // Held until all are read: what is given back at once would be the next one again.
        while held.len() < limit
            && let Some(message) = self.next().await?
        {
            found.push(describe(&message.delivery));
            held.push(message.delivery);
        }
        for delivery in held {
            let back = BasicNackOptions {
                requeue: true,
                ..BasicNackOptions::default()
            };
            within(delivery.nack(back)).await?;
        }
        Ok(found)
    }

    /// Sends the first `limit` ones to their queue again, and returns how many. Each is removed after the
    /// broker has confirmed its copy: a fault in between leaves it twice, which does no harm.
    ///
    /// # Errors
    /// The broker is away, or refuses a copy because the queue is full.
    pub async fn replay(&self, limit: usize) -> Result<usize, Error> {
        self.take(limit, true).await
    }

    /// Removes the first `limit` ones, and returns how many.
    ///
    /// # Errors
    /// The broker is away.
    pub async fn discard(&self, limit: usize) -> Result<usize, Error> {
        self.take(limit, false).await
    }

    async fn take(&self, limit: usize, replayed: bool) -> Result<usize, Error> {
        let mut taken = 0;
        while taken < limit
            && let Some(message) = self.next().await?
        {
            if replayed {
                self.copy(&message.delivery).await?;
            }
            within(message.delivery.ack(BasicAckOptions::default())).await?;
            taken += 1;
        }
        Ok(taken)
    }

    async fn copy(&self, delivery: &Delivery) -> Result<(), Error> {
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        // The headers say how often it was delivered already, so they stay behind but for the context.
        let properties = Message::read(delivery).map(|message| message.properties());
        let published = self.link.channel.basic_publish(
            "".into(),
            self.queue.name().into(),
            options,
            &delivery.data,
            properties.unwrap_or_default(),
        );
        match within(within(published).await?).await? {
            Confirmation::Ack(None) | Confirmation::NotRequested => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(_) => Err(Error::Refused),
        }
    }

    async fn next(&self) -> Result<Option<BasicGetMessage>, Error> {
        let name = self.queue.dead_letter_name();
        let got = self
            .link
            .channel
            .basic_get(name.into(), BasicGetOptions::default());
        within(got).await
    }

    /// Ends the connection; what was looked at and not taken stays.
    pub async fn close(self) {
        self.link.close().await;
    }
}

fn describe(delivery: &Delivery) -> DeadLetter {
    let context = Message::read(delivery).map(|message| message.context);
    let shown = String::from_utf8_lossy(&delivery.data);
    DeadLetter {
        id: shown
            .chars()
            .filter(|c| !c.is_control())
            .take(SHOWN)
            .collect(),
        reason: death(delivery, "reason")
            .and_then(|value| value.as_long_string().map(ToString::to_string))
            .unwrap_or_else(|| "unknown".to_owned()),
        died: death(delivery, "time").and_then(AMQPValue::as_timestamp),
        request_id: context.map(|context| context.request_id),
    }
}

/// A field of the newest entry of the header that the broker writes about a message's end.
fn death<'a>(delivery: &'a Delivery, field: &str) -> Option<&'a AMQPValue> {
    let headers = delivery.properties.headers().as_ref()?.inner();
    let deaths = headers.get("x-death")?.as_array()?;
    let newest = deaths.as_slice().first()?.as_field_table()?;
    newest.inner().get(field)
}
