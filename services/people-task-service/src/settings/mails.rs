use std::time::Duration;

use app_config::{Csv, Error, PublicUrl, Reader, Switch};
use auth::{MailKey, MailKeys};
use values::Language;

/// More reminders of one task would be a nuisance.
const MAX_REMINDERS: usize = 5;
const MAX_REMINDER: Duration = Duration::from_secs(365 * 24 * 3_600);

app_config::settings! {
    /// Settings of mail about tasks.
    pub struct MailSettings checked by check_key {
        /// The keys that the notification worker has, too. Without them there is no mail about tasks.
        pub keys: Option<MailKeys> = by(MailKeys::read),
        /// Whether mail is sent about every task, or only about those that are created with `notify: true`. It requires
        /// TASK_MAIL_KEY.
        pub by_default: Switch = or_default("TASK_MAIL", "off"),
        /// How long before the due date reminders are sent; zero is at the due date.
        pub reminders: Vec<Duration> = by(read_reminders),
        /// The language of mails, unless a task is created with another one.
        pub language: Language = or_default("MAIL_LANGUAGE", "en"),
        /// Mails about tasks that are sent to one address in an hour of the clock, at most a third of them about the tasks of one user,
        /// and as many again that are the first of a user; 0 for no limit. Further ones that ask wait for the next hour, for a day at
        /// most; others are dropped.
        pub per_recipient: u32 = between("TASK_MAIL_PER_RECIPIENT", "30", "0", "1000000"),
        /// Mails that are sent in an hour of the clock about the tasks of one user; 0 for no limit. Further ones that ask wait for the
        /// next hour, for a day at most; others are dropped. Each replica accepts as many creations with `notify: true` in an hour, and
        /// refuses further ones with `429`.
        pub per_creator: u32 = between("TASK_MAIL_PER_CREATOR", "300", "0", "1000000"),
        /// The address with which links begin.
        pub public_url: PublicUrl = part(),
    }
}

fn check_key(settings: &MailSettings) -> Result<(), Error> {
    if settings.by_default == Switch::On && settings.keys.is_none() {
        let purpose = "required because TASK_MAIL is on.";
        return Err(Error::missing::<MailKey>("TASK_MAIL_KEY", purpose));
    }
    Ok(())
}

fn read_reminders(reader: &mut Reader) -> Result<Vec<Duration>, Error> {
    let Csv(mut reminders) = reader.in_range::<Csv<Duration>>(
        "TASK_REMINDERS",
        "24h,0h",
        "up to 5 durations of at most 365d separated by commas such as `7d,24h,0h`, or `none`",
        |Csv(list)| {
            list.len() <= MAX_REMINDERS && list.iter().all(|before| *before <= MAX_REMINDER)
        },
        "How long before `decisionBy` approvers are reminded of pending tasks; `0h` is at that time.",
    )?;
    reminders.sort_unstable();
    reminders.dedup();
    Ok(reminders)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use app_config::{Reader, Settings as _, Switch};

    use super::MailSettings;

    fn read(pairs: &[(&str, &str)]) -> Result<MailSettings, app_config::Error> {
        let mut reader = Reader::from_pairs(pairs.iter().copied()).unwrap();
        MailSettings::read(&mut reader)
    }

    #[test]
    fn mail_is_off_by_default_and_cannot_be_on_without_a_key() {
        let settings = read(&[]).unwrap();
        assert!(settings.keys.is_none() && settings.by_default == Switch::Off);
        let error = read(&[("TASK_MAIL", "on")]).unwrap_err();
        assert!(error.to_string().contains("TASK_MAIL_KEY"), "{error}");
    }

    #[test]
    fn reminders_are_few_and_different() {
        let reminders = |list| read(&[("TASK_REMINDERS", list)]).map(|settings| settings.reminders);
        assert_eq!(
            reminders("24h,0h,1d").unwrap(),
            [0, 86_400].map(Duration::from_secs)
        );
        assert!(reminders("none").unwrap().is_empty());
        for wrong in ["1h,2h,3h,4h,5h,6h", "366d", "1h;2h", "soon"] {
            assert!(reminders(wrong).is_err(), "{wrong}");
        }
    }
}
