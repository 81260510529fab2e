use actix_web::HttpRequest;
use actix_web::http::header::ALLOW;
use actix_web::http::{Method, StatusCode};
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::PathItem;

use crate::Problem;

/// The routes of a process: the segments and methods of each path.
///
/// They come from the OpenAPI document, which is collected from the handlers, so the response to an unknown path
/// (`404`) or method (`405` with `Allow`) always matches the handlers.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    routes: Vec<(String, Vec<Method>)>,
}

impl Routes {
    /// The routes of an OpenAPI document.
    pub fn of(document: &OpenApi) -> Self {
        let paths = document.paths.paths.iter();
        Self {
            routes: paths
                .map(|(path, item)| (path.clone(), methods(item)))
                .collect(),
        }
    }

    /// Adds a route that the document does not describe, such as a page.
    #[must_use]
    pub fn and(mut self, path: &str, method: Method) -> Self {
        self.routes.push((path.to_owned(), vec![method]));
        self
    }

    /// Checks that a path exists and has a method.
    ///
    /// # Errors
    /// `404 not-found` for a path that does not exist, `405 method-not-allowed` with `Allow` for a
    /// method that the path does not have.
    pub fn check(&self, method: &Method, path: &str) -> Result<(), Problem> {
        let routes = self.routes.iter();
        let matching = routes.filter(|(template, _)| matches(template, path));
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
        match self.check(request.method(), request.path()) {
            Err(problem) => problem,
            Ok(()) => Problem::not_found("path"),
        }
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
