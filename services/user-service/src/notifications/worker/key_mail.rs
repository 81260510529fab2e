use chrono::{DateTime, Utc};
use values::{NotificationId, UserId};

use crate::notifications::Notice;

/// A mail about an API key that is ready to be sent.
pub(super) struct KeyMail {
    pub(super) id: NotificationId,
    pub(super) notice: Notice,
    pub(super) user: UserId,
    pub(super) email: String,
    /// What the key is called.
    pub(super) name: String,
    /// When it ends; `None` if never.
    pub(super) expires: Option<DateTime<Utc>>,
    /// The page with the keys of the user.
    pub(super) link: String,
}
