use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{AdminCaller, AdminProblems};
use database::{Connection, Database, DatabaseProblems, database_problem};
use http_kit::Problem;
use jobs::Backlog;
use messaging::QueueStatus;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::{deletions, notifications};

/// The jobs of one kind that have not ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = JobBacklog)]
pub(crate) struct BacklogResponse {
    /// `deletions` or `notifications`.
    #[schema(example = "deletions")]
    name: &'static str,
    /// How many jobs have not ended.
    #[schema(example = 2)]
    open: i64,
    /// How long the oldest due job has waited for a worker, in seconds.
    #[schema(example = 0.4)]
    overdue_seconds: f64,
}

impl BacklogResponse {
    fn new(name: &'static str, backlog: Backlog) -> Self {
        Self {
            name,
            open: backlog.open,
            overdue_seconds: backlog.overdue_seconds,
        }
    }
}

/// The jobs that wait for workers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserQueues)]
pub(crate) struct QueuesResponse {
    /// The queues of messages. The work itself is in the database.
    queues: Vec<QueueStatus>,
    /// The jobs that have not ended.
    jobs: Vec<BacklogResponse>,
}

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
