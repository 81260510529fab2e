use crate::settings::ChannelSettings;

/// How a notification is sent to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A JSON body to the operator's url.
    Webhook,
    /// An e-mail.
    Mail,
    /// A line in the worker's log, for development.
    Log,
}

impl Channel {
    /// Every channel.
    pub const ALL: [Self; 3] = [Self::Webhook, Self::Mail, Self::Log];

    /// The channels that are configured, in a fixed order.
    #[must_use]
    pub fn configured(settings: &ChannelSettings) -> Vec<Self> {
        [
            (Self::Webhook, settings.webhook.is_some()),
            (Self::Mail, settings.mail.is_some()),
            (Self::Log, settings.log),
        ]
        .into_iter()
        .filter_map(|(channel, configured)| configured.then_some(channel))
        .collect()
    }

    /// The name in the database and in responses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Mail => "mail",
            Self::Log => "log",
        }
    }

    /// The channel of a name; `None` for one that this version does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}
