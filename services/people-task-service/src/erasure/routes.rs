use actix_web::post;
use actix_web::web::{Data, Json, Path};
use audit_log::RequestMeta;
use auth::ServiceCaller;
use http_kit::{JsonBody, Problem, path_id};
use service_http::database_problem;

use crate::context::Context;
use crate::erasure::erase;
use crate::erasure::requests::EraseRequest;
use crate::erasure::responses::EraseResponse;

/// Deletes a batch of a user's data. For the system's own processes, which call again while `more` is true.
/// It is not in the public document, and the gateway does not route it.
#[post("/internal/users/{id}/erase")]
pub(crate) async fn erase_user(
    _caller: ServiceCaller,
    JsonBody(body): JsonBody,
    id: Path<String>,
    meta: RequestMeta,
    context: Data<Context>,
) -> Result<Json<EraseResponse>, Problem> {
    let request = EraseRequest::parse(body)?;
    let user = path_id(&id, "user")?;
    let erased = erase::erase(&context.database, user, request, meta)
        .await
        .map_err(database_problem)?;
    Ok(Json(EraseResponse {
        deleted: erased.deleted,
        deleted_tasks: erased.deleted_tasks,
        more: erased.more,
        blocked: erased.blocked,
    }))
}
