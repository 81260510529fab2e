//! Deliveries: decisions on their way to webhooks, and the result of each attempt.

pub(crate) mod decision_store;
mod error;
mod host;
mod list;
mod redeliver;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;
pub(crate) mod worker;

use messaging::Queue;

use self::host::host_of;

/// The queue of deliveries that are due.
pub const QUEUE: Queue = Queue::new("webhook.deliveries");
