use actix_web::post;
use actix_web::web::{Data, Json, Path};
use audit_log::RequestMeta;
use auth::ServiceCaller;
use database::Database;
use http_kit::{FieldError, Fields, JsonBody, Problem, path_id};
use serde::Serialize;
use values::{EmailAddress, FromText as _};

/// What one call did.
#[derive(Serialize)]
pub(crate) struct ErasedAnswer {
    deleted: usize,
    more: bool,
}

/// Deletes some of what a user left behind; the body names the user's e-mail addresses. For our own
/// processes, which call again while there is more. Not in the public document, never routed by the
/// gateway.
#[post("/internal/users/{id}/erase")]
pub(crate) async fn erase(
    _caller: ServiceCaller,
    JsonBody(fields): JsonBody,
    id: Path<String>,
    origin: RequestMeta,
    database: Data<Database>,
) -> Result<Json<ErasedAnswer>, Problem> {
    let emails = emails(fields)?;
    let user = path_id(&id, "user")?;
    let erased = super::erase(&database, user, emails, origin)
        .await
        .map_err(service_http::database_problem)?;
    Ok(Json(ErasedAnswer {
        deleted: erased.deleted,
        more: erased.more,
    }))
}

fn emails(mut fields: Fields) -> Result<Vec<EmailAddress>, Problem> {
    let texts: Option<Vec<String>> = fields.required("emails");
    fields.finish()?;
    let parsed = texts.iter().flatten().map(|text| {
        EmailAddress::from_text(text)
            .map_err(|invalid| Problem::validation(vec![FieldError::new("emails", invalid)]))
    });
    parsed.collect()
}
