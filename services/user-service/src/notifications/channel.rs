use crate::settings::ChannelSettings;

/// A way by which a message reaches a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A JSON body to a url of the operator's.
    Webhook,
    /// An e-mail.
    Mail,
    /// A line in the worker's log, for development.
    Log,
}

impl Channel {
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

    /// The name in the database and in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Mail => "mail",
            Self::Log => "log",
        }
    }

    /// The channel of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [Self::Webhook, Self::Mail, Self::Log];
        all.into_iter().find(|channel| channel.name() == name)
    }
}
