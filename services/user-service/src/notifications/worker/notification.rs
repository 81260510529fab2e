use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use values::{NotificationId, Secret, UserId};

use crate::notifications::{Channel, Kind, Notice};
use crate::settings::{CODE, NotificationWorkerSettings};

pub(super) struct Notification {
    pub(super) id: NotificationId,
    pub(super) channel: Channel,
    pub(super) user: UserId,
    pub(super) email: String,
    pub(super) created: DateTime<Utc>,
    pub(super) content: Content,
}

/// Whether a mail about a key is worth waiting for.
pub(super) fn is_recent(created: DateTime<Utc>) -> bool {
    Utc::now() - created < TimeDelta::days(1)
}

pub(super) enum Content {
    Code(Code),
    Key(AboutKey),
}

pub(super) struct Code {
    pub(super) kind: Kind,
    pub(super) code: Secret,
    pub(super) link: Secret,
    pub(super) lifetime: Duration,
}

impl Code {
    pub(super) fn generate(kind: Kind, settings: &NotificationWorkerSettings) -> Self {
        let template = match kind {
            Kind::ForgotPassword => &settings.channels.link,
            Kind::VerifyEmail => &settings.verify_email_link,
        };
        let code = Secret::random();
        Self {
            kind,
            link: Secret::new(template.replace(CODE, code.expose())),
            code,
            lifetime: settings.channels.code_lifetime,
        }
    }
}

pub(super) struct AboutKey {
    pub(super) notice: Notice,
    pub(super) name: String,
    /// When it ends; `None` if never.
    pub(super) expires: Option<DateTime<Utc>>,
    pub(super) link: String,
}
