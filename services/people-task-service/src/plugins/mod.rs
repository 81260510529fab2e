//! The original's newer paths: `/plugins/appmixer/utils/tasks/…` in place of `/people-task/…`.
//!
//! The same handlers serve both. [`rewrite`] changes the path before it is routed and marks the request, so
//! that answers add `taskId` or `webhookId`. Only the routes of [`ROUTES`] exist there.

pub(crate) mod routes;

use std::sync::LazyLock;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::{Method, Uri};
use actix_web::middleware::Next;
use actix_web::{HttpMessage as _, HttpRequest};
use http_kit::Routes;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{HttpMethod, Operation, PathItem};

const PREFIX: &str = "/plugins/appmixer/utils/tasks/";
const SERVED_BY: &str = "/people-task/";

/// What exists under the prefix and is served by the handler of the same name under `/people-task/`.
const ROUTES: [(Method, &str); 9] = [
    (Method::GET, "tasks"),
    (Method::POST, "tasks"),
    (Method::GET, "tasks-count"),
    (Method::GET, "tasks/{id}"),
    (Method::PUT, "tasks/{id}"),
    (Method::PUT, "tasks/{id}/approve"),
    (Method::PUT, "tasks/{id}/reject"),
    (Method::POST, "webhooks"),
    (Method::DELETE, "webhooks/{id}"),
];

static REWRITTEN: LazyLock<Routes> = LazyLock::new(|| {
    let none = Routes::default();
    ROUTES.into_iter().fold(none, |routes, (method, path)| {
        routes.and(&format!("{PREFIX}{path}"), method)
    })
});

/// The mark of a request that came by the prefix: the path that it came by.
#[derive(Clone)]
struct CameBy(String);

/// Whether a request came by the prefix.
pub(crate) fn is_plugins_request(request: &HttpRequest) -> bool {
    request.extensions().get::<CameBy>().is_some()
}

/// The path that a request came by, for links to it.
pub(crate) fn path_of(request: &HttpRequest) -> String {
    let came_by = request.extensions().get::<CameBy>().cloned();
    came_by.map_or_else(|| request.path().to_owned(), |CameBy(path)| path)
}

/// Middleware, outside of all others: lets the handlers of `/people-task/` serve the prefix. What does
/// not exist there keeps its path, and is refused as any unknown path.
///
/// # Errors
/// Those of the inner service.
pub(crate) async fn rewrite<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    if let Some(uri) = rewritten(&request) {
        let came_by = CameBy(request.path().to_owned());
        request.extensions_mut().insert(came_by);
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
    next.call(request).await
}

fn rewritten(request: &ServiceRequest) -> Option<Uri> {
    let rest = request.path().strip_prefix(PREFIX)?;
    REWRITTEN.check(request.method(), request.path()).ok()?;
    let path_and_query = match request.uri().query() {
        Some(query) => format!("{SERVED_BY}{rest}?{query}"),
        None => format!("{SERVED_BY}{rest}"),
    };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(path_and_query.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Adds the paths of the prefix to the document.
pub(crate) fn describe(document: &mut OpenApi) {
    for (method, path) in ROUTES {
        let served_by = document.paths.paths.get(&format!("{SERVED_BY}{path}"));
        let described = served_by.and_then(|item| operation(item, &method)).cloned();
        let Some((method, mut operation)) =
            described.zip(http_method(&method)).map(|(o, m)| (m, o))
        else {
            continue;
        };
        operation.operation_id = operation.operation_id.map(|id| format!("{id}OnNewerPath"));
        operation.description = Some(format!(
            "The same as `{SERVED_BY}{path}`; answers also carry `taskId` (webhooks: `webhookId`) with the value of `id`."
        ));
        let paths = &mut document.paths.paths;
        match paths.get_mut(&format!("{PREFIX}{path}")) {
            Some(item) => item.merge_operations(PathItem::new(method, operation)),
            None => {
                paths.insert(format!("{PREFIX}{path}"), PathItem::new(method, operation));
            }
        }
    }
}

fn operation<'a>(item: &'a PathItem, method: &Method) -> Option<&'a Operation> {
    match *method {
        Method::GET => item.get.as_ref(),
        Method::POST => item.post.as_ref(),
        Method::PUT => item.put.as_ref(),
        Method::DELETE => item.delete.as_ref(),
        _ => None,
    }
}

fn http_method(method: &Method) -> Option<HttpMethod> {
    match *method {
        Method::GET => Some(HttpMethod::Get),
        Method::POST => Some(HttpMethod::Post),
        Method::PUT => Some(HttpMethod::Put),
        Method::DELETE => Some(HttpMethod::Delete),
        _ => None,
    }
}
