use std::future::Future;

use lapin::options::BasicPublishOptions;
use lapin::{BasicProperties, Channel, Confirmation};

use crate::error::{Error, with_timeout};
use crate::queue::Queue;

/// What the broker did with a published message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PublishOutcome {
    Confirmed,
    /// No queue exists under the name.
    Returned,
    /// The queue is full, for example.
    Refused,
}

impl PublishOutcome {
    /// The value of the metric's label.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Returned => "returned",
            Self::Refused => "refused",
        }
    }
}

/// Publishes a message on a channel in confirm mode. The returned future waits for the confirm.
pub(crate) async fn publish(
    channel: &Channel,
    queue: Queue,
    body: &[u8],
    properties: BasicProperties,
) -> Result<impl Future<Output = Result<PublishOutcome, Error>> + use<>, Error> {
    // Without `mandatory` the broker confirms and drops a message that it cannot route.
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let published =
        channel.basic_publish("".into(), queue.name().into(), options, body, properties);
    let confirm = with_timeout(published).await?;
    Ok(async {
        Ok(match with_timeout(confirm).await? {
            Confirmation::Ack(None) | Confirmation::NotRequested => PublishOutcome::Confirmed,
            Confirmation::Ack(Some(_)) => PublishOutcome::Returned,
            Confirmation::Nack(_) => PublishOutcome::Refused,
        })
    })
}
