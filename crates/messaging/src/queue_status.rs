use crate::Publisher;
use serde::Serialize;
use utoipa::ToSchema;

/// A queue of messages about rows that are due, as it was at most five seconds ago.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Queue)]
pub struct QueueStatus {
    /// The queue's name.
    #[schema(example = "webhook.due-deliveries")]
    name: &'static str,
    /// Whether the service is connected to the broker. If not, the numbers are old.
    connected: bool,
    /// How many messages wait for a worker.
    #[schema(example = 12)]
    messages: u32,
    /// How many messages no worker could process.
    #[schema(example = 0)]
    dead_letters: u32,
}

impl From<&Publisher> for QueueStatus {
    fn from(publisher: &Publisher) -> Self {
        Self {
            name: publisher.queue().name(),
            connected: publisher.is_connected(),
            messages: publisher.depth(),
            dead_letters: publisher.dead_letters(),
        }
    }
}
