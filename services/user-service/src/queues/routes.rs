use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{AdminCaller, AdminProblems};
use database::{Connection, Database, DatabaseProblems, Error};
use http_kit::Problem;
use jobs::Backlog;
use messaging::QueueStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::{deletions, notifications};

/// The jobs that wait for workers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserQueues)]
pub(crate) struct QueuesResponse {
    /// The queues of messages. The work itself is in the database.
    queues: Vec<QueueStatus>,
    /// The jobs that have not ended.
    jobs: Vec<Backlog>,
}

/// Get the queues
///
/// The deletions and notifications that wait for workers, and the queues of messages about them.
#[utoipa::path(
    operation_id = "getUserQueues",
    responses(
        (status = 200, description = "The queues and jobs.", body = QueuesResponse),
        AdminProblems, DatabaseProblems
    )
)]
#[get("/users/queues")]
pub(crate) async fn user_queues(
    admin: AdminCaller,
    context: Data<Context>,
) -> Result<Json<QueuesResponse>, Problem> {
    let load = |database: Database| async move {
        let load = |connection: &mut Connection| {
            let deletions = deletions::JOBS.backlog(connection)?;
            Ok::<_, Error>(vec![deletions, notifications::JOBS.backlog(connection)?])
        };
        database.run(load).await
    };
    let jobs = context.lists.query(Some(admin.id()), load).await?;
    let queues = [&context.deletions, &context.notifications];
    Ok(Json(QueuesResponse {
        queues: queues.map(QueueStatus::from).into(),
        jobs,
    }))
}
