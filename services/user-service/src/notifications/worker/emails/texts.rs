//! The texts of mails in each language.

use std::time::Duration;

use chrono::{DateTime, Datelike as _, Timelike as _, Utc};
use values::Language;

/// The texts of one language.
pub(super) struct Texts {
    pub(super) forgot_password: CodeTexts,
    pub(super) verify_email: CodeTexts,
    pub(super) account: &'static str,
    pub(super) copy_link: &'static str,
    pub(super) task: TaskTexts,
}

/// The texts of a mail with a code.
pub(super) struct CodeTexts {
    pub(super) subject: &'static str,
    pub(super) reason: &'static str,
    pub(super) prompt: &'static str,
    pub(super) button: &'static str,
    pub(super) otherwise: &'static str,
}

/// The texts of mails about tasks.
pub(super) struct TaskTexts {
    pub(super) asked: KindTexts,
    pub(super) reminder: KindTexts,
    pub(super) due: KindTexts,
    pub(super) approved: KindTexts,
    pub(super) rejected: KindTexts,
    pub(super) requested_by: &'static str,
    pub(super) decide_by: &'static str,
    pub(super) decided_by: &'static str,
    pub(super) comment: &'static str,
    pub(super) approve: &'static str,
    pub(super) reject: &'static str,
    pub(super) open: &'static str,
    pub(super) confirm: &'static str,
    pub(super) keep: &'static str,
    pub(super) unsubscribe: &'static str,
}

/// What a mail about a task says first.
pub(super) struct KindTexts {
    /// The beginning of the subject, before the task's title.
    pub(super) subject: &'static str,
    pub(super) intro: &'static str,
}

impl Texts {
    pub(super) fn of(language: Language) -> &'static Self {
        match language {
            Language::English => &ENGLISH,
            Language::German => &GERMAN,
        }
    }
}

static ENGLISH: Texts = Texts {
    forgot_password: CodeTexts {
        subject: "Set a new password",
        reason: "We received a request to set a new password for the account with this address.",
        prompt: "Open this link to set one",
        button: "Set a new password",
        otherwise: "If you did not make this request, ignore this message: nothing has changed.",
    },
    verify_email: CodeTexts {
        subject: "Confirm your e-mail address",
        reason: "This address was added to an account. Confirm it with the password of that account.",
        prompt: "Open this link to confirm the address",
        button: "Confirm the address",
        otherwise: "If you did not create the account, ignore this message, or open the link and choose a new password: \
                    it locks out the person who created it. Never enter a password that someone else gave you.",
    },
    account: "Account",
    copy_link: "Or copy this address into your browser:",
    task: TaskTexts {
        asked: KindTexts {
            subject: "Please decide",
            intro: "You are asked to approve or reject this task.",
        },
        reminder: KindTexts {
            subject: "Reminder",
            intro: "This task still waits for your decision.",
        },
        due: KindTexts {
            subject: "Due now",
            intro: "This task is due now and still waits for your decision.",
        },
        approved: KindTexts {
            subject: "Approved",
            intro: "Your task was approved.",
        },
        rejected: KindTexts {
            subject: "Rejected",
            intro: "Your task was rejected.",
        },
        requested_by: "Requested by",
        decide_by: "Decide by",
        decided_by: "Decided by",
        comment: "Comment",
        approve: "Approve",
        reject: "Reject",
        open: "Open the task",
        confirm: "Each link opens the task, where you confirm your decision.",
        keep: "Keep this message to yourself: everyone who has a link in it can use it.",
        unsubscribe: "Turn reminders off",
    },
};

static GERMAN: Texts = Texts {
    forgot_password: CodeTexts {
        subject: "Neues Passwort festlegen",
        reason: "Für das Konto mit dieser Adresse wurde ein neues Passwort angefordert.",
        prompt: "Öffnen Sie diesen Link, um es festzulegen",
        button: "Neues Passwort festlegen",
        otherwise: "Wenn Sie das nicht waren, ignorieren Sie diese Nachricht: Nichts hat sich geändert.",
    },
    verify_email: CodeTexts {
        subject: "E-Mail-Adresse bestätigen",
        reason: "Diese Adresse wurde bei einem Konto eingetragen. Bestätigen Sie sie mit dem Passwort dieses Kontos.",
        prompt: "Öffnen Sie diesen Link, um die Adresse zu bestätigen",
        button: "Adresse bestätigen",
        otherwise: "Wenn Sie das Konto nicht angelegt haben, ignorieren Sie diese Nachricht, oder öffnen Sie den Link und \
                    wählen Sie ein neues Passwort: Damit sperren Sie aus, wer es angelegt hat. Geben Sie nie ein Passwort \
                    ein, das Ihnen jemand anderes genannt hat.",
    },
    account: "Konto",
    copy_link: "Oder kopieren Sie diese Adresse in Ihren Browser:",
    task: TaskTexts {
        asked: KindTexts {
            subject: "Bitte entscheiden",
            intro: "Sie werden gebeten, diese Aufgabe zu genehmigen oder abzulehnen.",
        },
        reminder: KindTexts {
            subject: "Erinnerung",
            intro: "Diese Aufgabe wartet noch auf Ihre Entscheidung.",
        },
        due: KindTexts {
            subject: "Jetzt fällig",
            intro: "Diese Aufgabe ist jetzt fällig und wartet noch auf Ihre Entscheidung.",
        },
        approved: KindTexts {
            subject: "Genehmigt",
            intro: "Ihre Aufgabe wurde genehmigt.",
        },
        rejected: KindTexts {
            subject: "Abgelehnt",
            intro: "Ihre Aufgabe wurde abgelehnt.",
        },
        requested_by: "Angefragt von",
        decide_by: "Entscheiden bis",
        decided_by: "Entschieden von",
        comment: "Kommentar",
        approve: "Genehmigen",
        reject: "Ablehnen",
        open: "Aufgabe öffnen",
        confirm: "Jeder Link öffnet die Aufgabe, dort bestätigen Sie Ihre Entscheidung.",
        keep: "Behalten Sie diese Nachricht für sich: Wer einen Link daraus hat, kann ihn benutzen.",
        unsubscribe: "Erinnerungen abschalten",
    },
};

const MONTHS_IN_ENGLISH: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const MONTHS_IN_GERMAN: [&str; 12] = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
];

/// A moment in UTC, as in `31 December 2026, 17:00 UTC`.
pub(super) fn moment(language: Language, moment: DateTime<Utc>) -> String {
    let (months, dot) = match language {
        Language::English => (MONTHS_IN_ENGLISH, ""),
        Language::German => (MONTHS_IN_GERMAN, "."),
    };
    let month = usize::try_from(moment.month0())
        .ok()
        .and_then(|month| months.get(month));
    let (day, month, year) = (moment.day(), month.unwrap_or(&""), moment.year());
    let (hour, minute) = (moment.hour(), moment.minute());
    format!("{day}{dot} {month} {year}, {hour:02}:{minute:02} UTC")
}

/// How long a code's link works.
pub(super) fn validity(language: Language, lifetime: Duration) -> String {
    let seconds = lifetime.as_secs();
    let (number, one, many) = match language {
        Language::English => units(
            seconds,
            [
                ("second", "seconds"),
                ("minute", "minutes"),
                ("hour", "hours"),
            ],
        ),
        Language::German => units(
            seconds,
            [
                ("Sekunde", "Sekunden"),
                ("Minute", "Minuten"),
                ("Stunde", "Stunden"),
            ],
        ),
    };
    let unit = if number == 1 { one } else { many };
    match language {
        Language::English => format!("The link works once, within {number} {unit}."),
        Language::German => format!("Der Link gilt einmal, innerhalb von {number} {unit}."),
    }
}

/// The number of the largest unit that tells a duration exactly enough, with the singular and plural of the unit.
fn units(
    seconds: u64,
    [second, minute, hour]: [(&'static str, &'static str); 3],
) -> (u64, &'static str, &'static str) {
    let (number, (one, many)) = if seconds >= 7_200 && seconds.is_multiple_of(3_600) {
        (seconds / 3_600, hour)
    } else if seconds >= 60 {
        (seconds / 60, minute)
    } else {
        (seconds, second)
    };
    (number, one, many)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_words() {
        for (seconds, english, german) in [
            (1, "1 second", "1 Sekunde"),
            (60, "1 minute", "1 Minute"),
            (3_600, "60 minutes", "60 Minuten"),
            (86_400, "24 hours", "24 Stunden"),
            (5_400, "90 minutes", "90 Minuten"),
        ] {
            for (language, words) in [(Language::English, english), (Language::German, german)] {
                let validity = validity(language, Duration::from_secs(seconds));
                assert!(validity.contains(words), "{validity}");
            }
        }
    }

    #[test]
    fn moments_are_written_in_words() {
        let at = DateTime::parse_from_rfc3339("2026-03-05T07:09:00Z")
            .unwrap()
            .to_utc();
        assert_eq!(moment(Language::English, at), "5 March 2026, 07:09 UTC");
        assert_eq!(moment(Language::German, at), "5. März 2026, 07:09 UTC");
    }
}
