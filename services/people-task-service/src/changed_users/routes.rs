use actix_web::put;
use actix_web::web::{Data, Json, Path};
use auth::ServiceCaller;
use database::Connection;
use http_kit::{JsonBody, Problem, path_id};
use serde_json::{Value, json};
use values::UserId;

use crate::changed_users::store::{self, ChangedUser};
use crate::context::Context;

/// Records what a user has become. For the system's own processes, which repeat a call that may not have arrived.
/// It is not in the public document, and the gateway does not route it.
#[put("/internal/users/{id}")]
pub(crate) async fn report_user(
    _caller: ServiceCaller,
    JsonBody(body): JsonBody,
    id: Path<String>,
    context: Data<Context>,
) -> Result<Json<Value>, Problem> {
    let user: ChangedUser = body.deserialized()?;
    let id: UserId = path_id(&id, "user")?;
    let record = move |connection: &mut Connection| store::record(connection, id, &user);
    context.database.transaction(record).await?;
    tracing::info!(user.id = %id, "a change of a user was recorded");
    Ok(Json(json!({})))
}
