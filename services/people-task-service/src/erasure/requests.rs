use chrono::{DateTime, Utc};
use http_kit::{FieldValue, Fields, Problem};
use serde_json::Value;
use values::{EmailAddress, Invalid};

use crate::tasks::store::erasure::RequesterAddress;

/// What the deletion-worker knows about a deleted user.
#[derive(Debug)]
pub(crate) struct EraseRequest {
    /// The addresses under which the user requested tasks.
    pub(crate) addresses: Vec<RequesterAddress>,
    /// The incarnation of the database that the user is deleted from.
    pub(crate) incarnation: String,
}

impl EraseRequest {
    /// Parses the body of a request: `emails`, and `formerEmails`, which the user had for some time.
    ///
    /// # Errors
    /// `400` with every invalid field.
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let present: Option<Present> = fields.required("emails");
        let former: Option<Former> = fields.optional("formerEmails");
        let incarnation: Option<String> = fields.required("incarnation");
        let required = present.zip(incarnation);
        let (present, incarnation) = fields.finish_with(required)?;
        let mut addresses = present.0;
        addresses.extend(former.into_iter().flat_map(|former| former.0));
        Ok(Self {
            addresses,
            incarnation,
        })
    }
}

/// Addresses that are the user's.
struct Present(Vec<RequesterAddress>);

/// Addresses that were the user's, each with `email`, `until` and, if it is known, `since`.
struct Former(Vec<RequesterAddress>);

impl FieldValue for Present {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let address = |email| {
            Ok(RequesterAddress {
                email: EmailAddress::from_json(email)?,
                since: None,
                until: None,
            })
        };
        let addresses = array(value)?.iter().map(address);
        addresses.collect::<Result<_, _>>().map(Self)
    }
}

impl FieldValue for Former {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let address = |former: &Value| {
            let field = |name| former.get(name).unwrap_or(&Value::Null);
            let since = Some(field("since")).filter(|since| !since.is_null());
            Ok(RequesterAddress {
                email: EmailAddress::from_json(field("email"))?,
                since: since.map(time).transpose()?,
                until: Some(time(field("until"))?),
            })
        };
        let addresses = array(value)?.iter().map(address);
        addresses.collect::<Result<_, _>>().map(Self)
    }
}

fn time(value: &Value) -> Result<DateTime<Utc>, Invalid> {
    let wrong = || Invalid::new("invalid-date", "Must be a time in RFC 3339 format.");
    let text = value.as_str().ok_or_else(wrong)?;
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| wrong())?;
    Ok(time.to_utc())
}

fn array(value: &Value) -> Result<&Vec<Value>, Invalid> {
    let wrong = || Invalid::new("invalid-type", "Must be an array.");
    value.as_array().ok_or_else(wrong)
}
