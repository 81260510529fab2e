use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{AdminCaller, AdminProblems};
use database::{Connection, Database, DatabaseProblems, database_problem};
use http_kit::Problem;
use messaging::QueueStatus;

use super::responses::{BacklogResponse, QueuesResponse};
use crate::context::Context;
use crate::{deletions, notifications};

/// Get the queues
///
/// The deletions and notifications that wait for workers, and the queues of messages about them.
#[utoipa::path(
    tag = "users",
    operation_id = "getUserQueues",
    responses(
        (status = 200, description = "The queues and jobs.", body = QueuesResponse),
        AdminProblems, DatabaseProblems
    ),
    security(("bearer" = []))
)]
#[get("/users/queues")]
pub(crate) async fn user_queues(
    admin: AdminCaller,
    context: Data<Context>,
) -> Result<Json<QueuesResponse>, Problem> {
    let load = |database: Database| async move {
        let load = |connection: &mut Connection| {
            let deletions = deletions::JOBS.backlog(connection)?;
            Ok((deletions, notifications::JOBS.backlog(connection)?))
        };
        database.run(load).await.map_err(database_problem)
    };
    let (deletions, notifications) = context.lists.query(Some(admin.id()), load).await?;
    let queues = [&context.deletions, &context.notifications];
    Ok(Json(QueuesResponse {
        queues: queues.map(QueueStatus::from).into(),
        jobs: vec![
            BacklogResponse::new(deletions::JOBS.name(), deletions),
            BacklogResponse::new(notifications::JOBS.name(), notifications),
        ],
    }))
}
