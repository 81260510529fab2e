//! Values that more than one process uses, parsed once at the edge.
//!
//! A value of one of these types is valid: the only way to make one is through its parser. Nothing
//! here knows HTTP, SQL or the queue; with the feature `diesel`, identifiers can also be bound to
//! `bytea` columns. Values of one capability, such as a task's title or a password, are in that capability.

mod email;
mod id;
mod invalid;
mod secret;
mod text;
mod timestamp;

pub use email::EmailAddress;
pub use id::{DeletionId, DeliveryId, NotificationId, TaskId, UserId, WebhookId};
pub use invalid::{FromText, Invalid};
pub use secret::{Fingerprint, Secret};
pub use text::bounded_text;
pub use timestamp::Timestamp;
