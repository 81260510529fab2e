//! Notifications to users: codes for a forgotten password or a new e-mail address, sent through every channel
//! that is configured.
//!
//! A request inserts one row for each channel. The worker makes the code when it sends it, so that no
//! readable code is ever stored.

mod channel;
pub(crate) mod code_store;
mod kind;
pub(crate) mod store;
pub mod worker;

use jobs::JobTable;
use messaging::Queue;
use values::NotificationId;

pub use channel::Channel;
pub use kind::Kind;

/// Jobs that send a notification.
pub(crate) const JOBS: JobTable<NotificationId> = JobTable::new("notifications");
/// Identifiers of notifications that are due.
pub const QUEUE: Queue = Queue::new("user.notifications");
