use actix_web::post;
use actix_web::web::{Data, Json, Path};
use audit_log::RequestMeta;
use auth::ServiceCaller;
use chrono::DateTime;
use http_kit::{FieldValue, Fields, JsonBody, Problem, path_id};
use serde_json::Value;
use values::{EmailAddress, Invalid, Timestamp, UserId};

use crate::context::Context;
use crate::erasure::{EraseRequest, Erased, erase};
use crate::tasks::store::erasure::RequesterAddress;

/// Deletes a batch of a user's data. For the system's own processes, which call again while `more` is true.
/// It is not in the public document, and the gateway does not route it.
#[post("/internal/users/{id}/erase")]
pub(crate) async fn erase_user(
    _caller: ServiceCaller,
    JsonBody(body): JsonBody,
    id: Path<String>,
    meta: RequestMeta,
    context: Data<Context>,
) -> Result<Json<Erased>, Problem> {
    let request = parse(path_id(&id, "user")?, body)?;
    Ok(Json(erase(&context.database, request, meta).await?))
}

/// Parses the body of a request: `emails`, and `formerEmails`, which the user had, or has, for some time only.
fn parse(id: UserId, mut fields: Fields) -> Result<EraseRequest, Problem> {
    let present: Option<List<EmailAddress>> = fields.required("emails");
    let former: Option<List<RequesterAddress>> = fields.optional("formerEmails");
    let incarnation: Option<String> = fields.required("incarnation");
    let changed: Option<Timestamp> = fields.optional("changed");
    let (List(present), incarnation) = fields.finish_with(present.zip(incarnation))?;
    let present = present.into_iter().map(|email| RequesterAddress {
        email,
        since: DateTime::UNIX_EPOCH,
        until: Timestamp::MAX.0,
    });
    let former = former.into_iter().flat_map(|List(former)| former);
    Ok(EraseRequest {
        id,
        addresses: present.chain(former).collect(),
        incarnation,
        changed: changed.map(|Timestamp(changed)| changed),
    })
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
            until: time(field("until"))?,
        })
    }
}
