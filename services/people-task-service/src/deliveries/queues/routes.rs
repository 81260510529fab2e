use actix_web::get;
use actix_web::web::{Data, Json};
use auth::{AdminCaller, AdminProblems};
use database::{Database, DatabaseProblems, database_problem};
use http_kit::Problem;
use messaging::QueueStatus;

use super::responses::QueuesResponse;
use crate::context::Context;
use crate::deliveries::backlog_store::{self, MAX_COUNTED};

/// What waits to be delivered: the queue of messages, and the deliveries that have not ended. For administrators.
#[utoipa::path(
    tag = "people-task",
    operation_id = "getDeliveryQueues",
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The queue and the deliveries.", body = QueuesResponse),
        AdminProblems, DatabaseProblems,
    ),
)]
#[get("/people-task/queues")]
pub(crate) async fn delivery_queues(
    admin: AdminCaller,
    context: Data<Context>,
) -> Result<Json<QueuesResponse>, Problem> {
    let load = |database: Database| async move {
        let load = |connection: &mut _| backlog_store::load_backlog(connection, MAX_COUNTED);
        database.run(load).await.map_err(database_problem)
    };
    let backlog = context.lists.query(Some(admin.id()), load).await?;
    Ok(Json(QueuesResponse {
        queues: vec![QueueStatus::from(&context.deliveries)],
        deliveries: backlog.into(),
    }))
}
