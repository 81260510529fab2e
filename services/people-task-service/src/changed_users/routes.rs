use actix_web::put;
use actix_web::web::{Data, Json, Path};
use auth::ServiceCaller;
use database::Connection;
use http_kit::{Fields, JsonBody, Problem, path_id};
use serde_json::{Value, json};
use values::{Timestamp, UserId};

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
    let user = parse(body)?;
    let id: UserId = path_id(&id, "user")?;
    let record = move |connection: &mut Connection| store::record(connection, id, &user);
    context.database.transaction(record).await?;
    tracing::info!(user.id = %id, "a change of a user was recorded");
    Ok(Json(json!({})))
}

fn parse(mut fields: Fields) -> Result<ChangedUser, Problem> {
    let changed: Option<Timestamp> = fields.required("changed");
    let is_active = fields.required("isActive");
    let is_admin = fields.required("isAdmin");
    let email = fields.optional("email");
    let user = changed.zip(is_active).zip(is_admin);
    let user = user.map(|((Timestamp(changed), is_active), is_admin)| ChangedUser {
        changed,
        is_active,
        is_admin,
        email,
    });
    fields.finish_with(user)
}
