//! Notifications to users: codes for a forgotten password or a new e-mail address, for each of which a request inserts a row for
//! every channel that is configured, and mails about API keys.

mod code_request;
pub(crate) mod store;
pub mod worker;

use jobs::JobTable;
use messaging::Queue;
use values::Names as _;

pub(crate) use self::code_request::CodeRequest;
use crate::settings::ChannelSettings;

pub(crate) const JOBS: JobTable = JobTable("notifications");
/// Identifiers of notifications that are due.
pub const QUEUE: Queue = Queue::new("user.notifications");

values::names! {
    /// Why a notification is sent. The name is that in the database, and the purpose of the code.
    pub(crate) enum Kind {
        ForgotPassword = "forgot-password",
        VerifyEmail = "verify-email",
    }

    /// A mail about an API key, which has no code. The name is that in the database.
    pub(crate) enum Notice {
        /// A key was made: by the user, a person who has the user's token, or an administrator.
        KeyCreated = "key-created",
        KeyExpires = "key-expires",
    }

    /// How a notification is sent to a user, with the name in the database and in responses.
    pub(crate) enum Channel {
        /// A JSON body to the operator's URL.
        Webhook = "webhook",
        Mail = "mail",
        /// A line in the worker's log, for development.
        Log = "log",
    }
}

impl Channel {
    /// The channels that are configured, in a fixed order.
    pub(crate) fn configured(settings: &ChannelSettings) -> Vec<Self> {
        let is_configured = |channel: &Self| match channel {
            Self::Webhook => settings.webhook.is_some(),
            Self::Mail => settings.mail.is_some(),
            Self::Log => settings.log,
        };
        Self::ALL.iter().copied().filter(is_configured).collect()
    }
}
