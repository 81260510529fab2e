use actix_web::http::header::LINK;
use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse, get, post, put};
use audit_log::RequestMeta;
use database::Database;
use http_kit::{JsonBody, OptionalJsonBody, Problem, Query, path_id};
use listing::RowBudget;
use messaging::Publisher;
use serde::Serialize;
use utoipa::ToSchema;

use crate::plugins;
use crate::problems::{AlreadyResolved, Forbidden, NoTask, NotAdmin};
use crate::tasks::answer::ListedTask;
use crate::tasks::credentials::{Credentials, PartialCredentials};
use crate::tasks::decide::{Decision, decide};
use crate::tasks::edit::Edit;
use crate::tasks::list::{self, Selection, both};
use crate::tasks::parameters::{
    ConditionParameters, IncludeParameter, ListParameters, ProjectionParameter, RoleParameter,
};
use crate::tasks::view::{Field, View};
use crate::tasks::{NewTask, SignedIn, TaskAnswer};
use auth::TokenProblems;
use http_kit::{BodyProblems, QueryProblems};
use service_http::DatabaseProblems;

/// What a task is created from.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
#[schema(rename_all = "camelCase")]
struct NewTaskBody {
    /// What is to be decided; blanks around it are dropped.
    #[schema(
        min_length = 1,
        max_length = 500,
        pattern = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]",
        example = "Buy a second printer"
    )]
    title: String,
    /// E-mail address of the person who asks for the decision.
    #[schema(format = "email", max_length = 254, example = "ada@example.com")]
    requester: String,
    /// E-mail address of the person who decides.
    #[schema(format = "email", max_length = 254, example = "grace@example.com")]
    approver: String,
    /// The details; empty when not given.
    #[schema(max_length = 20_000, example = "The first one jams.")]
    description: Option<String>,
    /// Until when a decision is wanted: `YYYY-MM-DD HH:MM:SS` (UTC) or RFC 3339. It blocks nothing.
    #[schema(format = "decision-by", example = "2026-12-31 17:00:00")]
    decision_by: Option<String>,
    /// Whether every signed-in user may read the task.
    #[schema(default = false)]
    public: Option<bool>,
}

/// What changes; what is absent stays. A field with the value that it has is no change.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
#[schema(rename_all = "camelCase")]
struct EditBody {
    /// What is to be decided.
    #[schema(
        min_length = 1,
        max_length = 500,
        pattern = r"[^\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
    )]
    title: Option<String>,
    /// The details.
    #[schema(max_length = 20_000)]
    description: Option<String>,
    /// Until when a decision is wanted; null for no date.
    #[schema(format = "decision-by", example = "2026-12-31 17:00:00")]
    decision_by: Option<String>,
    /// Who decides from now on. The old approver's secret stops working.
    #[schema(format = "email", max_length = 254)]
    approver: Option<String>,
    /// Who asks from now on. The old requester's secret stops working.
    #[schema(format = "email", max_length = 254)]
    requester: Option<String>,
    /// Whether every signed-in user may read the task.
    public: Option<bool>,
}

/// The secret of the task's approver, for a decision without a token.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the body, which is read field by field"
)]
struct DecisionBody {
    /// The approver's secret; it is also taken as `?secret=` and as the header `X-Task-Secret`.
    secret: Option<String>,
}

/// A number of tasks.
#[derive(Serialize, ToSchema)]
#[schema(as = TaskCount)]
struct CountAnswer {
    /// How many there are.
    #[schema(example = 3)]
    count: i64,
}

/// The tasks of the user: those that the user created, requested or is to approve. With a task's secret,
/// that task.
///
/// Sorted by `created` (descending), `decisionBy`, `title`, `status` or `mtime`; filtered by `status`,
/// `approver`, `requester`, `title` or `public`; `pattern` searches the title.
#[utoipa::path(
    tag = "people-task",
    operation_id = "listTasks",
    params(ListParameters, ConditionParameters, RoleParameter, ProjectionParameter, IncludeParameter),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "One page of tasks. `Link` names the next one.", body = [ListedTask]),
        QueryProblems, TokenProblems, NotAdmin, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks")]
pub(crate) async fn list_tasks(
    credentials: Credentials,
    view: Result<View, Problem>,
    query: Query,
    request: HttpRequest,
    database: Data<Database>,
    row_budget: Data<RowBudget>,
) -> Result<HttpResponse, Problem> {
    may_ask_for(&credentials, &query)?;
    let view = view.and_then(|view| view.projected(&query));
    let wanted = both(list::parse(&query), query.parsed("role"));
    let ((list, role), view) = both(wanted, view)?;
    let _permit = row_budget.acquire_rows(list.paging).await?;
    let page = list::list(&database, credentials.0, role, list).await?;
    let page = page.map(|(task, relations)| TaskAnswer::new(task, relations, &view));
    let mut response = HttpResponse::Ok();
    if let Some(link) = page.link(&plugins::path_of(&request), request.query_string()) {
        response.insert_header((LINK, link));
    }
    Ok(response.json(&page.rows))
}

/// How many tasks the list has, without limit.
#[utoipa::path(
    tag = "people-task",
    operation_id = "countTasks",
    params(ConditionParameters, RoleParameter),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The number.", body = CountAnswer),
        QueryProblems, TokenProblems, NotAdmin, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks-count")]
pub(crate) async fn count_tasks(
    credentials: Credentials,
    query: Query,
    database: Data<Database>,
) -> Result<Json<CountAnswer>, Problem> {
    may_ask_for(&credentials, &query)?;
    let selection = Selection::parse(&query)?;
    let count = list::count(&database, credentials.0, selection).await?;
    Ok(Json(CountAnswer { count }))
}

/// One task.
#[utoipa::path(
    tag = "people-task",
    operation_id = "getTask",
    params(("id" = String, Path, description = "The task's id."), IncludeParameter),
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The task.", body = TaskAnswer),
        QueryProblems, TokenProblems, NoTask, DatabaseProblems,
    ),
)]
#[get("/people-task/tasks/{id}")]
pub(crate) async fn get_task(
    credentials: Credentials,
    view: View,
    id: Path<String>,
    database: Data<Database>,
) -> Result<Json<TaskAnswer>, Problem> {
    let id = path_id(&id, "task")?;
    let (task, relations) = super::read(&database, credentials.0, id).await?;
    Ok(Json(TaskAnswer::new(task, relations, &view)))
}

/// Creates a task. The answer is the only one that shows both secrets.
#[utoipa::path(
    tag = "people-task",
    operation_id = "createTask",
    params(IncludeParameter),
    request_body = NewTaskBody,
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The task with `public` and its two secrets.", body = TaskAnswer),
        TokenProblems, BodyProblems, DatabaseProblems,
    ),
)]
#[post("/people-task/tasks")]
pub(crate) async fn create_task(
    who: SignedIn,
    JsonBody(fields): JsonBody,
    view: Result<View, Problem>,
    origin: RequestMeta,
    database: Data<Database>,
) -> Result<Json<TaskAnswer>, Problem> {
    let (new, view) = both(NewTask::read(fields), view)?;
    let created = super::create::create(&database, &who.caller, new, origin).await?;
    let relations = who.actor.relations_to(&created.task);
    let answer = TaskAnswer::new(created.task, relations, &view.and(Field::Public));
    let secrets = (&created.approver_secret, &created.requester_secret);
    Ok(Json(answer.with_secrets(Some(secrets.0), Some(secrets.1))))
}

/// Changes a pending task; its status stays. The approver may change `approver` only, which hands the
/// decision over. A new approver or requester gets a new secret, which the answer carries unless the
/// old one made the change.
#[utoipa::path(
    tag = "people-task",
    operation_id = "editTask",
    params(("id" = String, Path, description = "The task's id."), IncludeParameter),
    request_body = EditBody,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = [])),
    responses(
        (status = 200, description = "The task.", body = TaskAnswer),
        TokenProblems, Forbidden, NoTask, AlreadyResolved, BodyProblems, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}")]
pub(crate) async fn edit_task(
    credentials: Credentials,
    JsonBody(fields): JsonBody,
    view: Result<View, Problem>,
    origin: RequestMeta,
    id: Path<String>,
    database: Data<Database>,
) -> Result<Json<TaskAnswer>, Problem> {
    let (edit, view) = both(Edit::read(fields), view)?;
    let id = path_id(&id, "task")?;
    let edited = super::edit::edit(&database, credentials.0, id, edit, origin).await?;
    let secrets = (edited.approver_secret, edited.requester_secret);
    let answer = TaskAnswer::new(edited.task, edited.relations, &view);
    Ok(Json(
        answer.with_secrets(secrets.0.as_ref(), secrets.1.as_ref()),
    ))
}

/// Approves a pending task and triggers its webhooks. Of two simultaneous decisions one wins.
#[utoipa::path(
    tag = "people-task",
    operation_id = "approveTask",
    params(("id" = String, Path, description = "The task's id."), IncludeParameter),
    request_body = Option<DecisionBody>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, approved.", body = TaskAnswer),
        TokenProblems, Forbidden, NoTask, AlreadyResolved, BodyProblems, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}/approve")]
pub(crate) async fn approve_task(request: DecisionRequest) -> Result<Json<TaskAnswer>, Problem> {
    answer_decision(request, Decision::Approve).await
}

/// Rejects a pending task and triggers its webhooks. Of two simultaneous decisions one wins.
#[utoipa::path(
    tag = "people-task",
    operation_id = "rejectTask",
    params(("id" = String, Path, description = "The task's id."), IncludeParameter),
    request_body = Option<DecisionBody>,
    security(("bearer" = []), ("taskSecret" = []), ("taskSecretInQuery" = []), ()),
    responses(
        (status = 200, description = "The task, rejected.", body = TaskAnswer),
        TokenProblems, Forbidden, NoTask, AlreadyResolved, BodyProblems, DatabaseProblems,
    ),
)]
#[put("/people-task/tasks/{id}/reject")]
pub(crate) async fn reject_task(request: DecisionRequest) -> Result<Json<TaskAnswer>, Problem> {
    answer_decision(request, Decision::Reject).await
}

/// What both decisions read from a request.
type DecisionRequest = (
    PartialCredentials,
    Result<OptionalJsonBody, Problem>,
    Result<View, Problem>,
    RequestMeta,
    Path<String>,
    Data<Database>,
    Data<Publisher>,
);

async fn answer_decision(
    (credentials, body, view, origin, id, database, publisher): DecisionRequest,
    decision: Decision,
) -> Result<Json<TaskAnswer>, Problem> {
    let Credentials(actor) = credentials.with_body(body)?;
    let view = view?;
    let id = path_id(&id, "task")?;
    let (task, relations) = decide(&database, &publisher, actor, id, decision, origin).await?;
    Ok(Json(TaskAnswer::new(task, relations, &view)))
}

/// Looks at the right to the wanted role before the form of everything else.
fn may_ask_for(Credentials(actor): &Credentials, query: &Query) -> Result<(), Problem> {
    let role = query.parsed("role").unwrap_or_default();
    Ok(list::check_role(actor, role)?)
}
