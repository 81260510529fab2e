use actix_web::post;
use actix_web::web::{Data, Json, Path};
use audit_log::RequestMeta;
use auth::ServiceCaller;
use http_kit::{JsonBody, Problem, path_id};

use crate::context::Context;
use crate::erasure::requests::EraseRequest;
use crate::erasure::{Erased, erase};

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
    let request = EraseRequest::parse(path_id(&id, "user")?, body)?;
    Ok(Json(erase(&context.database, request, meta).await?))
}
