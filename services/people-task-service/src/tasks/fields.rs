use chrono::{DateTime, NaiveDateTime, Timelike as _, Utc};
use http_kit::FieldValue;
use serde_json::Value;
use values::{FromText, Invalid, bounded_text};

const MAX_TITLE: usize = 500;
const MAX_DESCRIPTION: usize = 20_000;
const DUE_DATE: &str = "%Y-%m-%d %H:%M:%S";

/// What is to be decided: 1 to 500 characters without the blanks around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskTitle(String);

impl TaskTitle {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromText for TaskTitle {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        bounded_text(text.trim(), 1, MAX_TITLE).map(|title| Self(title.to_owned()))
    }
}

/// The details: at most 20,000 characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description(String);

impl Description {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromText for Description {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        bounded_text(text, 0, MAX_DESCRIPTION).map(|text| Self(text.to_owned()))
    }
}

/// Until when a decision is wanted: a whole second in UTC of the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecisionBy(DateTime<Utc>);

impl DecisionBy {
    pub(crate) fn moment(self) -> DateTime<Utc> {
        self.0
    }

    /// The form in which it is always returned.
    pub(crate) fn format(moment: DateTime<Utc>) -> String {
        moment.format(DUE_DATE).to_string()
    }
}

impl FromText for DecisionBy {
    /// `YYYY-MM-DD HH:MM:SS` in UTC, or RFC 3339 with any offset; fractions of a second are dropped.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let invalid = || {
            Invalid::new(
                "invalid-date",
                "Must be an existing date as `YYYY-MM-DD HH:MM:SS` (UTC) or in the form of RFC 3339.",
            )
        };
        let moment = utc(text)
            .or_else(|| Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc()))
            // Leap seconds would come back as another second.
            .filter(|moment| moment.nanosecond() < 1_000_000_000)
            .and_then(|moment| moment.with_nanosecond(0))
            .ok_or_else(invalid)?;
        let year = Self::format(moment);
        if year.len() == 19 && !year.starts_with("0000") {
            Ok(Self(moment))
        } else {
            Err(invalid())
        }
    }
}

fn utc(text: &str) -> Option<DateTime<Utc>> {
    let moment = NaiveDateTime::parse_from_str(text, DUE_DATE)
        .ok()?
        .and_utc();
    // The library also takes numbers without their leading zeros.
    (DecisionBy::format(moment) == text).then_some(moment)
}

/// Makes types that parse from text fields of a body.
macro_rules! text_fields {
    ($($type:ty)+) => {$(
        impl FieldValue for $type {
            fn from_json(value: &Value) -> Result<Self, Invalid> {
                Self::from_text(&String::from_json(value)?)
            }
        }
    )+};
}

text_fields! { TaskTitle Description DecisionBy }

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use values::FromText as _;

    use super::{DecisionBy, Description, TaskTitle};

    #[test]
    fn a_title_is_trimmed_and_has_1_to_500_characters() {
        let title = |text: &str| TaskTitle::from_text(text).map(|title| title.as_str().to_owned());
        assert_eq!(title("  Buy a printer \n").unwrap(), "Buy a printer");
        assert_eq!(title("   ").unwrap_err().code, "too-short");
        assert!(title(&"é".repeat(500)).is_ok());
        assert_eq!(title(&"é".repeat(501)).unwrap_err().code, "too-long");
        assert_eq!(title("a\0b").unwrap_err().code, "nul-character");
    }

    #[test]
    fn a_description_keeps_its_blanks_and_has_at_most_20000_characters() {
        let text = Description::from_text(" a\nb ").unwrap();
        assert_eq!(text.as_str(), " a\nb ");
        assert!(Description::from_text(&"é".repeat(20_000)).is_ok());
        assert!(Description::from_text(&"é".repeat(20_001)).is_err());
    }

    #[test]
    fn both_forms_of_a_due_date_become_utc() {
        for (given, returned) in [
            ("2026-02-28 23:59:59", "2026-02-28 23:59:59"),
            ("2026-02-28T23:59:59Z", "2026-02-28 23:59:59"),
            ("2026-03-01T00:30:00.999+01:00", "2026-02-28 23:30:00"),
            ("2024-02-29 00:00:00", "2024-02-29 00:00:00"),
        ] {
            let date = DecisionBy::from_text(given).unwrap();
            assert_eq!(DecisionBy::format(date.moment()), returned, "{given}");
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        for text in [
            "",
            "tomorrow",
            "2026-02-30 00:00:00",
            "2025-02-29T00:00:00Z",
            "2026-01-01 24:00:00",
            "2026-01-01 12:00:60",
            "2026-01-01T12:00:60Z",
            "2026-1-1 1:1:1",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "0000-01-01 00:00:00",
            "9999-12-31T23:59:59-01:00",
            "0001-01-01T00:00:00+01:00",
            "+12026-01-01 00:00:00",
        ] {
            assert!(DecisionBy::from_text(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = DecisionBy::from_text(&text);
        }

        #[test]
        fn a_returned_due_date_is_taken_again(seconds in 0_i64..250_000_000_000) {
            let moment = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
            let text = DecisionBy::format(moment);
            prop_assert_eq!(DecisionBy::from_text(&text).unwrap().moment(), moment);
        }
    }
}
