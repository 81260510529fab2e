use actix_web::post;
use actix_web::web::{Data, Json, Path};
use audit_log::RequestMeta;
use auth::ServiceCaller;
use chrono::{DateTime, Utc};
use http_kit::{JsonBody, Problem, path_id};
use serde::Deserialize;
use values::{EmailAddress, Timestamp, UserId};

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
    let body: Body = body.deserialized()?;
    let user = body.of(path_id(&id, "user")?);
    Ok(Json(erase(&context.database, user, meta).await?))
}

/// The body of a request: the user's addresses, and those that the user had, or has, for some time only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    emails: Vec<EmailAddress>,
    #[serde(default)]
    former_emails: Vec<RequesterAddress>,
    incarnation: String,
    changed: Option<DateTime<Utc>>,
}

impl Body {
    fn of(self, id: UserId) -> EraseRequest {
        let present = self.emails.into_iter().map(|email| RequesterAddress {
            email,
            since: DateTime::UNIX_EPOCH,
            until: Timestamp::MAX.0,
        });
        EraseRequest {
            id,
            addresses: present.chain(self.former_emails).collect(),
            incarnation: self.incarnation,
            changed: self.changed,
        }
    }
}
