use chrono::{DateTime, Utc};
use http_kit::{FieldValue, Fields, Problem};
use serde_json::Value;
use values::{EmailAddress, Invalid};

/// A user as the user service knows it.
#[derive(Debug)]
pub(crate) struct ChangedUser {
    /// When it changed.
    pub(crate) changed: DateTime<Utc>,
    pub(crate) is_active: bool,
    pub(crate) is_admin: bool,
    /// The address that gives rights to tasks; `None` if it is not confirmed.
    pub(crate) email: Option<EmailAddress>,
}

impl ChangedUser {
    /// Parses the body of a request.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let changed: Option<Time> = fields.required("changed");
        let is_active = fields.required("isActive");
        let is_admin = fields.required("isAdmin");
        let email = fields.optional("email");
        let user = changed.zip(is_active).zip(is_admin);
        fields.finish_with(user.map(|((Time(changed), is_active), is_admin)| Self {
            changed,
            is_active,
            is_admin,
            email,
        }))
    }
}

struct Time(DateTime<Utc>);

impl FieldValue for Time {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let parsed = DateTime::parse_from_rfc3339(&String::from_json(value)?);
        let wrong = |_| Invalid::new("invalid-date", "Must be a time in RFC 3339 format.");
        parsed.map(|time| Self(time.to_utc())).map_err(wrong)
    }
}
