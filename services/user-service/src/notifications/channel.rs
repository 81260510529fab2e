use crate::settings::ChannelSettings;

values::names! {
    /// How a notification is sent to a user, with the name in the database and in responses.
    pub enum Channel {
        /// A JSON body to the operator's URL.
        Webhook = "webhook",
        /// An e-mail.
        Mail = "mail",
        /// A line in the worker's log, for development.
        Log = "log",
    }
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
}
