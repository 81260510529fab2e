use chrono::DateTime;
use http_kit::{FieldValue, Fields, Problem};
use serde_json::Value;
use values::{EmailAddress, Invalid, Timestamp, UserId};

use crate::tasks::store::erasure::RequesterAddress;

#[derive(Debug)]
pub(crate) struct EraseRequest {
    pub(crate) id: UserId,
    /// The addresses under which the user requested tasks.
    pub(crate) addresses: Vec<RequesterAddress>,
    /// The incarnation of the database that the user is deleted from.
    pub(crate) incarnation: String,
}

impl EraseRequest {
    /// Parses the body of a request: `emails`, and `formerEmails`, which the user had for some time.
    pub(crate) fn parse(id: UserId, mut fields: Fields) -> Result<Self, Problem> {
        let present: Option<List<EmailAddress>> = fields.required("emails");
        let former: Option<List<RequesterAddress>> = fields.optional("formerEmails");
        let incarnation: Option<String> = fields.required("incarnation");
        let (List(present), incarnation) = fields.finish_with(present.zip(incarnation))?;
        let present = present.into_iter().map(|email| RequesterAddress {
            email,
            since: DateTime::UNIX_EPOCH,
            until: None,
        });
        let former = former.into_iter().flat_map(|List(former)| former);
        Ok(Self {
            id,
            addresses: present.chain(former).collect(),
            incarnation,
        })
    }
}

struct List<T>(Vec<T>);

impl<T: FieldValue> FieldValue for List<T> {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("invalid-type", "Must be an array.");
        let values = value.as_array().ok_or_else(wrong)?.iter();
        values.map(T::from_json).collect::<Result<_, _>>().map(Self)
    }
}

/// An address that was the user's: `email`, `until` and, unless all earlier tasks are the user's, `since`.
impl FieldValue for RequesterAddress {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let field = |name| value.get(name).unwrap_or(&Value::Null);
        let time = |value| Timestamp::from_json(value).map(|Timestamp(time)| time);
        let since = Some(field("since")).filter(|since| !since.is_null());
        Ok(Self {
            email: EmailAddress::from_json(field("email"))?,
            since: since.map_or(Ok(DateTime::UNIX_EPOCH), time)?,
            until: Some(time(field("until"))?),
        })
    }
}
