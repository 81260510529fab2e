use lapin::options::BasicPublishOptions;
use lapin::{BasicProperties, Channel, PublisherConfirm};

use crate::error::{Error, with_timeout};
use crate::queue::Queue;

/// Publishes a message on a channel in confirm mode. The confirm is still to be awaited.
pub(crate) async fn publish(
    channel: &Channel,
    queue: Queue,
    body: &[u8],
    properties: BasicProperties,
) -> Result<PublisherConfirm, Error> {
    // Without `mandatory` the broker confirms and drops a message that it cannot route.
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let (exchange, key) = queue.route();
    let publish = channel.basic_publish(exchange.into(), key.into(), options, body, properties);
    with_timeout(publish).await
}
