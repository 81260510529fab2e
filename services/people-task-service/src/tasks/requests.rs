mod precondition;

use chrono::{DateTime, NaiveDateTime, Timelike as _, Utc};
use http_kit::{Fields, Problem, Query, combine_errors};
use listing::{ListQuery, Sort};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat};
use values::{EmailAddress, FromText, Invalid, Language, Names as _, bounded_text, visible_text};

use crate::status::Deciders;
use crate::tasks::list_query::{Role, TaskListQuery, TaskSort};
use crate::tasks::metadata::Metadata;

pub(crate) use self::precondition::{Precondition, TaskVersion};

const MAX_TITLE: usize = 500;
const MAX_DESCRIPTION: usize = 20_000;
/// Matches a text with at least one character that is not whitespace.
const NOT_BLANK: &str = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]";
const DATE_FORMAT: &str = "%Y-%m-%d %H:%M:%S";

/// The fields of a new task.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewTaskFields {
    /// What the approver decides about, with at least one character that can be seen; whitespace around it is dropped.
    pub(crate) title: TaskTitle,
    /// E-mail address of the person who needs the decision.
    pub(crate) requester: EmailAddress,
    /// E-mail address of the person who decides.
    pub(crate) approver: EmailAddress,
    /// The details; empty by default.
    #[schema(inline, value_type = Option<Description>, example = "The first one jams.")]
    pub(crate) description: Description,
    /// The date by which a decision is needed: `YYYY-MM-DD HH:MM:SS` (UTC) or RFC 3339. The task can still
    /// be decided after it.
    #[schema(inline, example = "2026-12-31 17:00:00")]
    pub(crate) decision_by: Option<DecisionBy>,
    /// Whether every signed-in user may read the task.
    #[schema(value_type = Option<bool>, default = false)]
    pub(crate) public: bool,
    /// Whether a rejection needs a comment.
    #[schema(value_type = Option<bool>, default = false)]
    pub(crate) comment_required: bool,
    /// Whether the page asks for a second press before it sends a decision. Calls of the API decide at once.
    #[schema(value_type = Option<bool>, default = false)]
    pub(crate) confirmation_required: bool,
    /// Who decides the task, if not also its creator and administrators: with `approver` only the approver, signed in or by
    /// the link that is mailed to them; with `signed-in` only the approver, signed in. Administrators may still decide with
    /// `?override=true`, which is recorded. The approver's secret in the response then only opens the task, and only the
    /// approver may name another one. The default is a setting.
    #[schema(inline)]
    pub(crate) deciders: Option<Deciders>,
    /// With `false`, who created or requested the task does not decide it, and the approver's secret in the response only
    /// opens it.
    #[schema(value_type = Option<bool>, default = true)]
    pub(crate) self_approval: bool,
    /// What to keep with the task, such as identifiers of the flow: at most 4 KiB as JSON. `include=metadata` shows it to
    /// the task's creator and to administrators.
    #[schema(inline)]
    pub(crate) metadata: Option<Metadata>,
    /// Whether the approver and the requester get mail about the task. The default is a setting.
    pub(crate) notify: Option<bool>,
    /// The language of that mail, `en` or `de`. The default is a setting.
    #[schema(inline)]
    pub(crate) language: Option<MailLanguage>,
}

impl NewTaskFields {
    /// Parses the fields of the task in a body. It returns `None` only if it has recorded an error.
    pub(crate) fn read(fields: &mut Fields) -> Option<Self> {
        let title = fields.required("title");
        let requester = fields.required("requester");
        let approver = fields.required("approver");
        let description: Option<Description> = fields.optional("description");
        let request = Self {
            description: description.unwrap_or_default(),
            decision_by: fields.optional("decisionBy"),
            public: fields.optional("public").unwrap_or(false),
            comment_required: fields.optional("commentRequired").unwrap_or(false),
            confirmation_required: fields.optional("confirmationRequired").unwrap_or(false),
            deciders: fields.optional("deciders"),
            self_approval: fields.optional("selfApproval").unwrap_or(true),
            metadata: fields.optional("metadata"),
            notify: fields.optional("notify"),
            language: fields.optional("language"),
            // Last, so that every other error is recorded.
            title: title?,
            requester: requester?,
            approver: approver?,
        };
        Some(request)
    }
}

/// Changes to a task. An absent field stays as it is, and so does a field with its current value.
#[derive(Debug, Default, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct EditTaskRequest {
    /// What the approver decides about.
    #[schema(inline)]
    pub(crate) title: Option<TaskTitle>,
    /// The details.
    #[schema(inline)]
    pub(crate) description: Option<Description>,
    /// The date by which a decision is needed; null for none.
    #[schema(inline, value_type = Option<DecisionBy>, example = "2026-12-31 17:00:00")]
    pub(crate) decision_by: Option<Option<DecisionBy>>,
    /// The new approver. The old approver's secret stops working.
    #[schema(inline)]
    pub(crate) approver: Option<EmailAddress>,
    /// The new requester. The old requester's secret stops working.
    #[schema(inline)]
    pub(crate) requester: Option<EmailAddress>,
    /// Whether every signed-in user may read the task.
    pub(crate) public: Option<bool>,
    /// Whether a rejection needs a comment.
    pub(crate) comment_required: Option<bool>,
    /// Whether the page asks for a second press before it sends a decision.
    pub(crate) confirmation_required: Option<bool>,
    /// What to keep with the task instead of what was kept; null for nothing. For the task's creator and administrators.
    #[schema(inline, value_type = Option<Metadata>)]
    pub(crate) metadata: Option<Option<Metadata>>,
    /// With `true`, the approver gets a new secret and the old one stops working, as with a new approver. For the task's creator
    /// and administrators, to whom the response shows it.
    pub(crate) renew_approver_secret: Option<bool>,
    /// The version that the changes are made to, like `If-Match`. Another one is `409 task-changed`.
    #[schema(inline, example = 1)]
    pub(crate) version: Option<TaskVersion>,
}

impl EditTaskRequest {
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let request = Self {
            title: fields.optional("title"),
            description: fields.optional("description"),
            decision_by: fields.nullable("decisionBy"),
            approver: fields.optional("approver"),
            requester: fields.optional("requester"),
            public: fields.optional("public"),
            comment_required: fields.optional("commentRequired"),
            confirmation_required: fields.optional("confirmationRequired"),
            metadata: fields.nullable("metadata"),
            renew_approver_secret: fields.optional("renewApproverSecret"),
            version: fields.optional("version"),
        };
        fields.finish_with(Some(request))
    }
}

/// Parses the parameters of a list, and `role`. The newest tasks come first by default.
pub(crate) fn parse_list(query: &Query) -> Result<(TaskListQuery, Option<Role>), Problem> {
    let list = ListQuery::parse(query, Sort::descending(TaskSort::Created));
    combine_errors(list, parse_role(query))
}

pub(super) fn parse_role(query: &Query) -> Result<Option<Role>, Problem> {
    query.parsed("role").map_err(|_| {
        let message = "Must be one of creator, approver, requester and, for administrators, any.";
        Problem::invalid_field("role", Invalid::new("unknown-value", message))
    })
}

/// The bytes of a task's texts, as quotas count them.
pub(crate) fn byte_length(title: &str, description: &str, metadata: Option<&str>) -> u64 {
    let bytes = title.len() + description.len() + metadata.unwrap_or_default().len();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

values::texts! {
    /// What the approver decides about: 1 to 500 characters, without the whitespace around them, and at least one that can
    /// be seen.
    pub(crate) struct TaskTitle = |text| visible_text(text.trim(), 1, MAX_TITLE);

    /// The details: at most 20,000 characters.
    #[derive(Default)]
    pub(crate) struct Description = |text| bounded_text(text, 0, MAX_DESCRIPTION);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MailLanguage(pub(crate) Language);

impl FromText for MailLanguage {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Language::from_text(text).map(Self)
    }
}

/// The date by which a decision is needed: a whole second in UTC, in the years 1 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DecisionBy(DateTime<Utc>);

impl DecisionBy {
    pub(crate) fn moment(self) -> DateTime<Utc> {
        self.0
    }

    pub(crate) fn format(moment: DateTime<Utc>) -> String {
        moment.format(DATE_FORMAT).to_string()
    }
}

impl FromText for DecisionBy {
    /// Parses `YYYY-MM-DD HH:MM:SS` in UTC, or RFC 3339 with any offset. Fractions of a second are dropped.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let message =
            "Must be an existing date, as `YYYY-MM-DD HH:MM:SS` (UTC) or in RFC 3339 format.";
        let invalid = || Invalid::new("invalid-date", message);
        let moment = parse_utc(text)
            .or_else(|| Some(DateTime::parse_from_rfc3339(text).ok()?.to_utc()))
            // A leap second would be returned as another second.
            .filter(|moment| moment.nanosecond() < 1_000_000_000)
            .and_then(|moment| moment.with_nanosecond(0))
            .ok_or_else(invalid)?;
        let formatted = Self::format(moment);
        if formatted.len() == 19 && !formatted.starts_with("0000") {
            Ok(Self(moment))
        } else {
            Err(invalid())
        }
    }
}

fn parse_utc(text: &str) -> Option<DateTime<Utc>> {
    let moment = NaiveDateTime::parse_from_str(text, DATE_FORMAT)
        .ok()?
        .and_utc();
    // chrono also accepts numbers without their leading zeros.
    (DecisionBy::format(moment) == text).then_some(moment)
}

http_kit::text_fields! {
    Deciders;
    TaskTitle = ObjectBuilder::new()
        .format(Some(SchemaFormat::Custom("visible-text".to_owned())))
        .min_length(Some(1))
        .max_length(Some(MAX_TITLE))
        .pattern(Some(NOT_BLANK));
    Description = ObjectBuilder::new().max_length(Some(MAX_DESCRIPTION));
    MailLanguage = ObjectBuilder::new().enum_values(Some(Language::ALL.iter().map(|l| l.name())));
    DecisionBy = ObjectBuilder::new()
        .format(Some(SchemaFormat::Custom("decision-by".to_owned())));
}

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
        assert_eq!(title("\u{3164}\u{200b}").unwrap_err().code, "invisible");
        let joined = "نامه\u{200c}ها 👩\u{200d}💻\u{ad}";
        assert_eq!(title(joined).unwrap(), joined);
    }

    #[test]
    fn a_description_keeps_its_whitespace_and_has_at_most_20000_characters() {
        let text = Description::from_text(" a\nb ").unwrap();
        assert_eq!(text.as_str(), " a\nb ");
        assert!(Description::from_text(&"é".repeat(20_000)).is_ok());
        assert!(Description::from_text(&"é".repeat(20_001)).is_err());
    }

    #[test]
    fn a_date_in_either_format_becomes_utc() {
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
    fn dates_that_do_not_exist_are_invalid() {
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
        fn parsing_never_panics(text in any::<String>()) {
            let _ = DecisionBy::from_text(&text);
        }

        #[test]
        fn a_formatted_date_parses_again(seconds in 0_i64..250_000_000_000) {
            let moment = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
            let text = DecisionBy::format(moment);
            prop_assert_eq!(DecisionBy::from_text(&text).unwrap().moment(), moment);
        }
    }
}
