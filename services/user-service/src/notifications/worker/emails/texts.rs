//! The texts of mails in each language, from the files in `templates/texts`.

use std::time::Duration;

use chrono::{DateTime, Datelike as _, Utc};
use serde::Deserialize;
use values::Language;

#[derive(Debug)]
pub(in crate::notifications::worker) struct AllTexts {
    english: Texts,
    german: Texts,
}

/// The texts of one language. Names in braces are replaced by values.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::notifications::worker) struct Texts {
    pub(super) language: &'static str,
    pub(super) forgot_password: CodeTexts,
    pub(super) verify_email: CodeTexts,
    pub(super) account: &'static str,
    pub(super) copy_link: &'static str,
    validity: &'static str,
    seconds: Unit,
    minutes: Unit,
    hours: Unit,
    moment: &'static str,
    months: [&'static str; 12],
    pub(super) task: TaskTexts,
    pub(super) key: KeyTexts,
}

/// The singular and plural of a unit of time.
type Unit = [&'static str; 2];

#[derive(Debug, Deserialize)]
pub(super) struct CodeTexts {
    pub(super) subject: &'static str,
    pub(super) reason: &'static str,
    pub(super) prompt: &'static str,
    pub(super) button: &'static str,
    pub(super) otherwise: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyTexts {
    pub(super) created: NoticeTexts,
    pub(super) expires: NoticeTexts,
    pub(super) name: &'static str,
    pub(super) end: &'static str,
    pub(super) open: &'static str,
}

#[derive(Debug, Deserialize)]
pub(super) struct NoticeTexts {
    pub(super) subject: &'static str,
    pub(super) intro: &'static str,
    pub(super) advice: &'static str,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskTexts {
    pub(super) asked: KindTexts,
    pub(super) reminder: KindTexts,
    pub(super) due: KindTexts,
    pub(super) approved: KindTexts,
    pub(super) rejected: KindTexts,
    pub(super) cancelled: KindTexts,
    pub(super) requested_by: &'static str,
    pub(super) decide_by: &'static str,
    pub(super) decided_by: &'static str,
    pub(super) cancelled_by: &'static str,
    pub(super) reason: &'static str,
    pub(super) comment: &'static str,
    pub(super) approve: &'static str,
    pub(super) reject: &'static str,
    pub(super) open: &'static str,
    pub(super) confirm: &'static str,
    pub(super) keep: &'static str,
    pub(super) unsubscribe: &'static str,
}

#[derive(Debug, Deserialize)]
pub(super) struct KindTexts {
    /// The beginning of the subject, before the task's title.
    pub(super) subject: &'static str,
    pub(super) intro: &'static str,
}

impl AllTexts {
    /// Fails if a file lacks a text, which is a mistake in the file.
    pub(in crate::notifications::worker) fn load() -> serde_json::Result<Self> {
        Ok(Self {
            english: serde_json::from_str(include_str!("../../../../templates/texts/en.json"))?,
            german: serde_json::from_str(include_str!("../../../../templates/texts/de.json"))?,
        })
    }

    pub(in crate::notifications::worker) fn of(&self, language: Language) -> &Texts {
        match language {
            Language::English => &self.english,
            Language::German => &self.german,
        }
    }
}

impl Texts {
    /// A moment in UTC, as in `31 December 2026, 17:00 UTC`.
    pub(super) fn moment(&self, moment: DateTime<Utc>) -> String {
        let month = usize::try_from(moment.month0()).ok();
        let month = month.and_then(|month| self.months.get(month));
        self.moment
            .replace("{day}", &moment.day().to_string())
            .replace("{month}", month.unwrap_or(&""))
            .replace("{year}", &moment.year().to_string())
            .replace("{time}", &moment.format("%H:%M").to_string())
    }

    /// How long a code's link works, in the largest unit that tells it exactly enough.
    pub(super) fn validity(&self, lifetime: Duration) -> String {
        let seconds = lifetime.as_secs();
        let (number, [one, many]) = if seconds >= 7_200 && seconds.is_multiple_of(3_600) {
            (seconds / 3_600, self.hours)
        } else if seconds >= 60 {
            (seconds / 60, self.minutes)
        } else {
            (seconds, self.seconds)
        };
        let unit = if number == 1 { one } else { many };
        self.validity.replace("{time}", &format!("{number} {unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_words() {
        let texts = AllTexts::load().unwrap();
        for (seconds, english, german) in [
            (1, "1 second", "1 Sekunde"),
            (60, "1 minute", "1 Minute"),
            (3_600, "60 minutes", "60 Minuten"),
            (86_400, "24 hours", "24 Stunden"),
            (5_400, "90 minutes", "90 Minuten"),
        ] {
            for (language, words) in [(Language::English, english), (Language::German, german)] {
                let validity = texts.of(language).validity(Duration::from_secs(seconds));
                assert!(validity.contains(words), "{validity}");
            }
        }
    }

    #[test]
    fn moments_are_written_in_words() {
        let at = DateTime::parse_from_rfc3339("2026-03-05T07:09:00Z")
            .unwrap()
            .to_utc();
        let texts = AllTexts::load().unwrap();
        let moment = |language| texts.of(language).moment(at);
        assert_eq!(moment(Language::English), "5 March 2026, 07:09 UTC");
        assert_eq!(moment(Language::German), "5. März 2026, 07:09 UTC");
    }
}
