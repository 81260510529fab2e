use std::time::Duration;

use app_config::{Csv, Error, Reader};
use auth::MailKeys;
use database::DatabaseSettings;
use messaging::BrokerSettings;
use outbound::AddressPolicy;
use url::Url;
use values::Language;

use super::channels::read_link;
use crate::settings::ChannelSettings;

app_config::settings! {
    /// Settings of the notification worker.
    pub struct NotificationWorkerSettings checked by check_task_mail {
        pub(crate) database: DatabaseSettings = part(),
        pub(crate) broker: BrokerSettings = part(),
        pub(crate) channels: ChannelSettings = part(),
        pub(crate) addresses: AddressPolicy = part(),
        pub(crate) verify_email_link: String = by(|reader: &mut Reader| read_link(
            reader,
            "VERIFY_EMAIL_URL",
            "verify-email",
            "The link that confirms an e-mail address, by default a page under PUBLIC_URL. {{code}} stands for the code.",
        )),
        /// The language of mails, unless a task is created with another one.
        pub(crate) language: Language = or_default("MAIL_LANGUAGE", "en"),
        /// The keys that the people-task service has, too. Without them or a mail server no mail about tasks is sent.
        pub(crate) task_mail_keys: Option<MailKeys> = by(MailKeys::read),
        /// The URL of the people-task service. TASK_MAIL_KEY requires it.
        pub(crate) people_task_service: Option<Url> = optional("PEOPLE_TASK_SERVICE_URL"),
        /// The pauses between the attempts to send a notification to a user, each ±20 %. While the mail server fails, mails about
        /// tasks and API keys are tried for a day, at intervals of the last pause, which is 10 minutes for `none`.
        pub(crate) retry_schedule: Csv<Duration> = or_default("NOTIFICATION_RETRY_SCHEDULE", "1s,5s,30s,2m,10m"),
    }
}

fn check_task_mail(settings: &NotificationWorkerSettings) -> Result<(), Error> {
    let has_task_mail = settings.task_mail_keys.is_some() && settings.channels.mail.is_some();
    if has_task_mail && settings.people_task_service.is_none() {
        let purpose = "required because TASK_MAIL_KEY is set.";
        return Err(Error::missing::<Url>("PEOPLE_TASK_SERVICE_URL", purpose));
    }
    Ok(())
}
