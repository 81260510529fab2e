//! Messages to users: codes for a forgotten password, on their way to every channel that is configured.
//!
//! A request writes one row for each channel; the worker makes the code when it sends, so no code is
//! ever stored in a form that opens anything.

mod channel;
pub(crate) mod store;
pub mod worker;

use messaging::Queue;

pub use channel::Channel;

/// Identifiers of notifications that are due.
pub const QUEUE: Queue = Queue::new("user.notifications");
