use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, Responder, get, put};
use audit_log::RequestMeta;
use auth::TokenProblems;
use database::{Connection, DatabaseProblems};
use http_kit::{BodyProblems, JsonBody, Problem, Query, QueryProblems, combine_errors, path_id};
use listing::CountResponse;

use crate::context::Context;
use crate::error::{Changed, Forbidden, NoTask, NotAdmin};
use crate::plugin_paths;
use crate::quotas::QuotaExceeded;
use crate::status::TaskStatus;
use crate::tasks::access::Actor;
use crate::tasks::edit;
use crate::tasks::list_query::{Role, TaskConditions, TaskListQuery};
use crate::tasks::projection::{FieldSelection, Projection};
use crate::tasks::read::{self, TaskLookups};
use crate::tasks::requests::{EditTaskRequest, Precondition, parse_list, parse_role};
use crate::tasks::responses::{ListedTaskResponse, TaskResponse};

/// The tasks of the user: those that the user created, requested or approves. With a task's secret, that
/// task.
///
/// Sorted by `created` (descending), `decisionBy`, `title`, `status`, `mtime`, `approver`, `requester` or
/// `decisionMade`; filtered by `status`,
/// `approver`, `requester`, `title`, `public` or `text`; `pattern` searches the title, and the filter `text` the title and
/// the addresses of approver and requester, without regard to accents. If more than 100,000 tasks match, `offset` is at most 10,000 in an order other than `created`.
#[utoipa::path(
    params(TaskListQuery, Role, Projection),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "One page of tasks.", body = [ListedTaskResponse],
            headers(("Link" = String, description = "`<…>; rel=\"next\"` if there is a next page."))),
        QueryProblems, TokenProblems, NotAdmin, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks")]
pub(crate) async fn list_tasks(
    actor: Actor,
    query: Query,
    request: HttpRequest,
    context: Data<Context>,
) -> Result<HttpResponse, Problem> {
    check_role(&actor, &query)?;
    let ((list, role), fields) = combine_errors(parse_list(&query), Projection::of(&request))?;
    let (caller, paging) = (actor.owner(), list.paging);
    let load = move |connection: &mut Connection, limits| {
        read::list(connection, &actor, role, &list, limits)
    };
    let response = move |(task, relations)| TaskResponse::new(task, relations, &fields);
    let page = context.lists.page(caller, paging, load, response).await?;
    let path = plugin_paths::original_path(&request);
    Ok(page.respond(&path, request.query_string()))
}

/// The number of tasks in the list, regardless of `limit`.
#[utoipa::path(
    params(TaskConditions, Role),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The number.", body = CountResponse),
        QueryProblems, TokenProblems, NotAdmin, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks-count")]
pub(crate) async fn count_tasks(
    actor: Actor,
    query: Query,
    context: Data<Context>,
) -> Result<Json<CountResponse>, Problem> {
    check_role(&actor, &query)?;
    let (role, conditions) = combine_errors(parse_role(&query), TaskConditions::parse(&query))?;
    let caller = actor.owner();
    let count =
        move |connection: &mut Connection| read::count(connection, &actor, role, &conditions);
    let count = context.lists.query(caller, count).await?;
    Ok(Json(CountResponse { count }))
}

/// One task.
///
/// With `wait`, the response to a pending task comes as soon as the task is no longer pending, and after that many seconds
/// at the latest, with the task as it is then. The rights of the caller are judged again.
#[utoipa::path(
    params(
        ("id" = String, Path, description = "The task's id."), FieldSelection,
        ("wait" = Option<u8>, Query, minimum = 0, maximum = 50, description = "How long to wait while the task is pending, in seconds."),
    ),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The task.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        QueryProblems, TokenProblems, NoTask, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}")]
pub(crate) async fn get_task(
    actor: Actor,
    request: HttpRequest,
    query: Query,
    id: Path<String>,
    lookups: Data<TaskLookups>,
) -> Result<impl Responder, Problem> {
    let wait = query.number("wait", 0..=MAX_WAIT, 0);
    let (fields, wait) = combine_errors(FieldSelection::of(&request), wait)?;
    let id = path_id(&id, "task")?;
    let (task, relations) = read::read(&lookups, actor, id).await?;
    let waits = wait > 0 && task.status == TaskStatus::Pending;
    let mut response = TaskResponse::new(task, relations, &fields).customize();
    if waits {
        response = response.insert_header((MAY_WAIT, wait));
    }
    Ok(response)
}

/// How long a caller may wait for the end of a task, in seconds: less than the minute after which many proxies give up.
const MAX_WAIT: i64 = 50;

/// The header that tells the gateway for how many seconds the caller may wait. Callers do not get it.
const MAY_WAIT: &str = "x-may-wait";

/// Changes a pending task, but not its status. The approver may change only `approver`, to hand the
/// decision over; a requester cannot become the approver. A new approver or requester gets a new secret, and
/// the old one stops working. The response has it only for the task's creator and administrators.
#[utoipa::path(
    params(("id" = String, Path, description = "The task's id."), FieldSelection, Precondition),
    request_body = EditTaskRequest,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The task.", body = TaskResponse, headers(("ETag" = String, description = "The task's version."))),
        BodyProblems, TokenProblems, Forbidden, NoTask, Changed, QuotaExceeded, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}")]
pub(crate) async fn edit_task(
    actor: Actor,
    JsonBody(body): JsonBody,
    request: HttpRequest,
    meta: RequestMeta,
    id: Path<String>,
    context: Data<Context>,
) -> Result<TaskResponse, Problem> {
    let conditions = combine_errors(Precondition::of(&request), FieldSelection::of(&request));
    let (changes, (precondition, fields)) =
        combine_errors(EditTaskRequest::parse(body), conditions)?;
    let id = path_id(&id, "task")?;
    let edited = edit::edit(&context, actor, id, changes, precondition, meta);
    let (task, relations, secrets) = edited.await?;
    let response = TaskResponse::new(task, relations, &fields);
    Ok(response.with_secrets(secrets.each_ref().map(Option::as_ref)))
}

/// Checks the right to the requested role before the other parameters.
fn check_role(actor: &Actor, query: &Query) -> Result<(), Problem> {
    let role = parse_role(query).unwrap_or_default();
    Ok(read::check_role(actor, role)?)
}
