//! Value types that several processes share, parsed once where they enter the system.
//!
//! A value of one of these types is always valid, because only its parser creates it. Nothing here depends on
//! HTTP or the queue. The feature `diesel` lets values be columns, and `openapi` documents them. Values of one
//! capability, such as a task's title, are defined there.

mod email;
mod id;
mod invalid;
mod language;
mod names;
mod secret;
mod text;
mod timestamp;
mod untrusted_json;

pub use email::EmailAddress;
pub use id::{
    CredentialId, DeletionId, DeliveryId, MailId, NotificationId, RevocableId, TaskId, UserId,
    WebhookId,
};
pub use invalid::{FromText, Invalid};
pub use language::Language;
pub use names::Names;
pub use secret::{Fingerprint, Secret};
pub use text::{bounded_text, is_visible, visible_text};
pub use timestamp::Timestamp;
pub use untrusted_json::UntrustedJson;
