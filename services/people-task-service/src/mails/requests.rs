//! Request bodies and parameters of mails.

use std::time::Duration;

use http_kit::{FieldValue, Fields, Problem, Query};
use serde_json::Value;
use utoipa::IntoParams;
use values::{Invalid, UserId};

const MAX_CLAIMED: u64 = 100;
/// The highest number of an attempt, which no mail reaches.
const MAX_ATTEMPT: u64 = 1_000_000_000;
/// The longest pause between two attempts, in milliseconds.
const MAX_PAUSE: u64 = 24 * 3_600 * 1_000;

/// What a worker can send now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) limit: usize,
    pub(super) per_creator: usize,
    /// The creator of whose mails it is sending too many already.
    pub(super) except: Option<UserId>,
}

impl Room {
    /// Parses the body of a claim: `limit` and, in workers since 0.3.0, `perCreator` and perhaps `exceptCreator`.
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let limit = fields.required::<Whole<MAX_CLAIMED>>("limit");
        let per_creator = fields.optional::<Whole<MAX_CLAIMED>>("perCreator");
        let except = fields.optional("exceptCreator");
        let number = |whole: Whole<MAX_CLAIMED>| usize::try_from(whole.0).unwrap_or(usize::MAX);
        fields.finish_with(limit.map(|limit| Self {
            limit: number(limit),
            per_creator: per_creator.map_or(usize::MAX, number),
            except,
        }))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// The number of the attempt, which is that of the claim.
    pub(super) attempt: i64,
    /// The pause before the next attempt. `None` if there is none: the mail was sent or is given up.
    pub(super) pause: Option<Duration>,
}

impl Report {
    /// Parses the body of a report: `attempt`, and `retryAfterMs` if the mail is to be tried again.
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let attempt = fields.required::<Whole<MAX_ATTEMPT>>("attempt");
        let pause = fields.optional::<Whole<MAX_PAUSE>>("retryAfterMs");
        fields.finish_with(attempt.map(|attempt| Self {
            attempt: i64::try_from(attempt.0).unwrap_or(i64::MAX),
            pause: pause.map(|pause| Duration::from_millis(pause.0)),
        }))
    }
}

/// A whole number from 1 to a maximum.
struct Whole<const MAX: u64>(u64);

impl<const MAX: u64> FieldValue for Whole<MAX> {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let number = value.as_u64().filter(|number| (1..=MAX).contains(number));
        number.map(Self).ok_or_else(|| {
            let message = format!("Must be a whole number from 1 to {MAX}.");
            Invalid::new("out-of-range", message)
        })
    }
}

/// The parameters of an unsubscribe link.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UnsubscribeQuery {
    /// The token of the link.
    pub(super) token: String,
    /// `on` turns reminders on again.
    #[param(rename = "reminders", required = false, value_type = Option<String>)]
    pub(super) turns_on: bool,
}

values::names! {
    /// Whether a recipient wants reminders.
    enum Reminders {
        On = "on",
        Off = "off",
    }
}

impl UnsubscribeQuery {
    pub(super) fn parse(query: &Query) -> Result<Self, Problem> {
        let token = query.first("token").unwrap_or_default();
        Ok(Self {
            token: token.to_owned(),
            turns_on: query.parsed("reminders")? == Some(Reminders::On),
        })
    }
}
