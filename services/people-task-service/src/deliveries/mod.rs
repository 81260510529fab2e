//! Deliveries: decisions and passed due dates on their way to webhooks, and the result of each attempt.

mod all_store;
mod backlog_store;
mod bulk;
mod bulk_store;
mod cancel;
mod due;
mod error;
mod host;
pub(crate) mod hosts;
mod list;
pub(crate) mod queues;
mod redeliver;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;
pub(crate) mod worker;

use messaging::Queue;

pub(crate) use self::due::{DueDelivery, due_message};
pub(crate) use self::host::{host_of, scheme_and_host};

/// The queue of messages about deliveries that are due.
pub const QUEUE: Queue = Queue::transient("webhook.due-deliveries");
