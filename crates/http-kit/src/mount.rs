use actix_web::http::header::ALLOW;
use actix_web::http::{Method, StatusCode};
use actix_web::web::{Data, PathConfig, ServiceConfig, get, to};
use actix_web::{HttpRequest, HttpResponse};
use utoipa::openapi::path::PathItem;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{OpenApi, RefOr};

use crate::{Health, Problem, healthz, join_problems, readyz};

/// Completes the operations of a document: one that names no `security` takes an access token, one without a tag gets `tag`,
/// and the name of its handler is its identifier in camel case, unless it has another. A parameter such as `userId` that has no
/// description gets one. The problems of a status become one response.
#[must_use]
pub fn complete(mut document: OpenApi, tag: &str) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        let methods = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        for operation in methods.into_iter().flatten() {
            let bearer = || vec![SecurityRequirement::new("bearer", Vec::<String>::new())];
            operation.security.get_or_insert_with(bearer);
            join_problems(&mut operation.responses.responses);
            let tags = operation.tags.get_or_insert_default();
            if tags.is_empty() {
                tags.push(tag.to_owned());
            }
            operation.operation_id = operation.operation_id.as_deref().map(camel_case);
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && let Some(what) = parameter.name.strip_suffix("Id")
                {
                    let id = format!("The {what}'s id: 24 lower-case hexadecimal digits.");
                    parameter.description.get_or_insert(id);
                }
            }
        }
    }
    document
}

fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut starts_word = false;
    for letter in name.chars() {
        match letter {
            '_' => starts_word = true,
            _ if std::mem::take(&mut starts_word) => camel.push(letter.to_ascii_uppercase()),
            _ => camel.push(letter),
        }
    }
    camel
}

/// Adds what both services have in addition to their own routes: `/healthz`, `/readyz`, `404` for a path parameter of the wrong
/// form, and `404` or `405` for requests that no route takes.
pub fn mount(config: &mut ServiceConfig, health: Data<Health>, routes: Data<Routes>) {
    config
        .app_data(health)
        .app_data(routes)
        .app_data(PathConfig::default().error_handler(|_, _| Problem::not_found("path").into()))
        .route("/healthz", get().to(healthz))
        .route("/readyz", get().to(readyz))
        .default_service(to(fallback));
}

async fn fallback(request: HttpRequest, routes: Data<Routes>) -> Result<HttpResponse, Problem> {
    Err(routes.refuse(&request))
}

/// The routes of a process: the segments and methods of each path.
///
/// They come from the OpenAPI document, which is collected from the handlers, so the response to an unknown path
/// (`404`) or method (`405` with `Allow`) always matches the handlers.
#[derive(Debug, Clone, Default)]
pub struct Routes(Vec<(String, Vec<Method>)>);

impl Routes {
    /// The routes of an OpenAPI document.
    pub fn of(document: &OpenApi) -> Self {
        let paths = document.paths.paths.iter();
        let routes = paths.map(|(path, item)| (path.clone(), methods(item)));
        Self(routes.collect())
    }

    /// Adds a route that the document does not describe, such as a page.
    #[must_use]
    pub fn and(mut self, path: &str, method: Method) -> Self {
        self.0.push((path.to_owned(), vec![method]));
        self
    }

    /// Checks that a path exists and has a method.
    ///
    /// # Errors
    /// `404 not-found` for a path that does not exist, `405 method-not-allowed` with `Allow` for a
    /// method that the path does not have.
    pub fn check(&self, method: &Method, path: &str) -> Result<(), Problem> {
        let matching = self
            .0
            .iter()
            .filter(|(template, _)| matches(template, path));
        let allowed: Vec<_> = matching.flat_map(|(_, methods)| methods).collect();
        if allowed.is_empty() {
            let detail = "There is no such path. See /openapi.json for all operations.";
            return Err(Problem::new(StatusCode::NOT_FOUND, "not-found", detail));
        }
        if allowed.contains(&method) {
            return Ok(());
        }
        let mut names: Vec<_> = allowed.iter().map(|method| method.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names = names.join(", ");
        let detail = format!("The allowed methods are: {names}.");
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", detail);
        Err(problem.header(ALLOW, names))
    }

    /// The response to a request that no handler takes: see [`Routes::check`].
    pub fn refuse(&self, request: &HttpRequest) -> Problem {
        let checked = self.check(request.method(), request.path());
        checked.map_or_else(|problem| problem, |()| Problem::not_found("path"))
    }
}

/// Whether a path has the segments of a template, in which `{…}` stands for any that is not empty.
fn matches(template: &str, path: &str) -> bool {
    let (expected, given) = (template.split('/'), path.split('/'));
    expected.clone().count() == given.clone().count()
        && expected.zip(given).all(|(expected, given)| {
            expected == given || expected.starts_with('{') && !given.is_empty()
        })
}

fn methods(item: &PathItem) -> Vec<Method> {
    let all = [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::DELETE, &item.delete),
        (Method::PATCH, &item.patch),
    ];
    let described = all.into_iter().filter(|(_, operation)| operation.is_some());
    described.map(|(method, _)| method).collect()
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::http::Method;

    use super::Routes;

    fn routes() -> Routes {
        Routes::default()
            .and("/users/count", Method::GET)
            .and("/users/{id}", Method::GET)
            .and("/users/{id}", Method::DELETE)
    }

    #[test]
    fn unknown_paths_are_404_and_other_methods_405_with_allow() {
        assert!(routes().check(&Method::GET, "/users/1").is_ok());
        let problem = routes().check(&Method::PUT, "/users/1").unwrap_err();
        assert_eq!(problem.status_code(), 405);
        let allow = problem.error_response().headers().get("allow").cloned();
        assert_eq!(allow.unwrap(), "DELETE, GET");
        for path in ["/", "/users", "/users/", "/users/1/2", "//users/1"] {
            let problem = routes().check(&Method::GET, path).unwrap_err();
            assert_eq!(problem.status_code(), 404, "{path}");
        }
    }
}
