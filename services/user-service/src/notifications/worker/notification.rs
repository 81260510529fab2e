use std::time::Duration;

use chrono::{DateTime, Utc};
use values::{NotificationId, Secret, UserId};

use crate::notifications::Kind;

const CODE: &str = "{{code}}";

/// How links are built and how long codes are valid.
#[derive(Debug, Clone)]
pub(super) struct CodeSettings {
    /// The link of [`Kind::ForgotPassword`], with `{{code}}` as the placeholder.
    pub(super) forgot_password: String,
    /// The link of [`Kind::VerifyEmail`], with `{{code}}` as the placeholder.
    pub(super) verify_email: String,
    /// The page with a user's API keys.
    pub(super) keys: String,
    pub(super) lifetime: Duration,
}

impl CodeSettings {
    pub(super) fn link(&self, kind: Kind, code: &Secret) -> Secret {
        let template = match kind {
            Kind::ForgotPassword => &self.forgot_password,
            Kind::VerifyEmail => &self.verify_email,
        };
        Secret::new(template.replace(CODE, code.expose()))
    }
}

/// A notification that is ready to be sent.
pub(super) struct Notification {
    pub(super) id: NotificationId,
    pub(super) kind: Kind,
    pub(super) user: UserId,
    pub(super) email: String,
    /// When the notification was requested.
    pub(super) created: DateTime<Utc>,
    pub(super) code: Secret,
    pub(super) link: Secret,
    /// How long the code is valid.
    pub(super) lifetime: Duration,
}
