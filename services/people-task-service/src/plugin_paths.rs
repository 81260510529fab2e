//! The Appmixer plugin paths: `/plugins/appmixer/utils/tasks/…` for `/people-task/…`.
//!
//! The same handlers serve both. [`rewrite`] changes the path before routing and keeps the original one, so
//! that responses add `taskId` or `webhookId`, and links point to where the request came from. Only the
//! routes in [`auth::routes::ROUTES`] exist under the prefix. One is only Appmixer's: where people see their tasks.

use std::sync::LazyLock;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, Uri};
use actix_web::middleware::Next;
use actix_web::web::{Data, Json};
use actix_web::{HttpMessage as _, HttpRequest, get};
use auth::{Caller, TokenProblems};
use http_kit::Routes;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{HttpMethod, Operation, PathItem};

use crate::context::Context;

const PREFIX: &str = "/plugins/appmixer/utils/tasks/";
const TARGET_PREFIX: &str = "/people-task/";

/// The routes under the prefix that the handler of the same path under `/people-task/` serves.
fn routes() -> impl Iterator<Item = (&'static Method, &'static str)> {
    let routes = auth::routes::ROUTES.iter();
    let routes = routes.filter_map(|route| Some((&route.method, route.path.strip_prefix(PREFIX)?)));
    routes.filter(|(_, path)| *path != "dashboard-url")
}

static PLUGIN_ROUTES: LazyLock<Routes> = LazyLock::new(|| {
    let add = |routes: Routes, (method, path)| {
        routes.and(&format!("{PREFIX}{path}"), Method::clone(method))
    };
    routes().fold(Routes::default(), add)
});

/// The path of a rewritten request before it was rewritten.
#[derive(Clone)]
struct OriginalPath(String);

pub(crate) fn is_plugin_request(request: &HttpRequest) -> bool {
    request.extensions().get::<OriginalPath>().is_some()
}

/// The path that the request came to, for links to it.
pub(crate) fn original_path(request: &HttpRequest) -> String {
    let original = request.extensions().get::<OriginalPath>().cloned();
    original.map_or_else(|| request.path().to_owned(), |OriginalPath(path)| path)
}

/// Middleware, outside of all others, that rewrites plugin paths. A path that does not exist under the
/// prefix stays as it is, and is refused like any unknown path.
pub(crate) async fn rewrite<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    if let Some(uri) = rewritten(&request) {
        let original = OriginalPath(request.path().to_owned());
        request.extensions_mut().insert(original);
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
    next.call(request).await
}

fn rewritten(request: &ServiceRequest) -> Option<Uri> {
    let path_and_query = request.uri().path_and_query()?.as_str();
    let rest = path_and_query.strip_prefix(PREFIX)?;
    PLUGIN_ROUTES.check(request.method(), request.path()).ok()?;
    let path_and_query = format!("{TARGET_PREFIX}{rest}");
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(path_and_query.parse().ok()?);
    Uri::from_parts(parts).ok()
}

pub(crate) fn document(document: &mut OpenApi) {
    for (method, path) in routes() {
        let target = document.paths.paths.get(&format!("{TARGET_PREFIX}{path}"));
        let Some((method, operation)) = target.and_then(|item| operation(item, method)) else {
            continue;
        };
        let mut operation = operation.clone();
        operation.operation_id = operation.operation_id.map(|id| format!("{id}Plugin"));
        let late = match path {
            "webhooks" => {
                " A webhook is also called for `due` unless `events` says otherwise, and bodies also carry `taskId`, \
                 `decisionMade`, `created` and `mtime`. If the task is decided already, the webhook is called at once."
            }
            _ => "",
        };
        operation.description = Some(format!(
            "Appmixer's path for `{TARGET_PREFIX}{path}`. Responses also carry `taskId` (webhooks: `webhookId`) with the value of `id`.{late}"
        ));
        let paths = &mut document.paths.paths;
        let item = paths.entry(format!("{PREFIX}{path}")).or_default();
        item.merge_operations(PathItem::new(method, operation));
    }
}

fn operation<'a>(item: &'a PathItem, method: &Method) -> Option<(HttpMethod, &'a Operation)> {
    let (method, operation) = match *method {
        Method::GET => (HttpMethod::Get, &item.get),
        Method::POST => (HttpMethod::Post, &item.post),
        Method::PUT => (HttpMethod::Put, &item.put),
        Method::DELETE => (HttpMethod::Delete, &item.delete),
        _ => return None,
    };
    Some((method, operation.as_ref()?))
}

/// Where people see their tasks.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DashboardResponse {
    /// The page's URL.
    #[schema(example = "http://localhost:8080/tasks")]
    dashboard_url: String,
}

/// The page on which people see their tasks.
#[utoipa::path(
    responses((status = 200, description = "The page.", body = DashboardResponse), TokenProblems),
)]
#[get("/plugins/appmixer/utils/tasks/dashboard-url")]
pub(crate) async fn dashboard_url(
    _caller: Caller,
    context: Data<Context>,
) -> Json<DashboardResponse> {
    Json(DashboardResponse {
        dashboard_url: context.dashboard_url.to_string(),
    })
}
