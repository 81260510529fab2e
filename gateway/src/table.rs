//! What exists behind the gateway: the one list of routes.

use actix_web::http::Method;

/// One method of one path.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path, with parameters in braces. It is the same at the service.
    pub(crate) path: &'static str,
    pub(crate) service: Service,
    pub(crate) access: Access,
    pub(crate) rate: Rate,
}

impl Route {
    /// The methods that callers may use: its own, and `HEAD` where it only reads (RFC 9110 section 9.1).
    pub(crate) fn methods(&self) -> impl Iterator<Item = Method> {
        let reads = self.method == Method::GET && self.path != DELETING_GET;
        std::iter::once(self.method.clone()).chain(reads.then_some(Method::HEAD))
    }
}

/// Who answers a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    User,
    PeopleTask,
}

/// What the gateway asks of a caller. The services ask for themselves, and more closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing: an `Authorization` header is passed on unread.
    Public,
    /// A valid token.
    Token,
    /// A valid token or none: then the service looks for a task's secret.
    TokenOrSecret,
}

/// Which rate limit a route counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rate {
    Normal,
    /// Whoever guesses passwords or floods mailboxes comes through these.
    Credentials,
}

use Access::{Public, Token, TokenOrSecret};

const fn user(method: Method, path: &'static str, access: Access) -> Route {
    Route {
        method,
        path,
        service: Service::User,
        access,
        rate: Rate::Normal,
    }
}

const fn credentials(path: &'static str) -> Route {
    Route {
        method: Method::POST,
        path,
        service: Service::User,
        access: Public,
        rate: Rate::Credentials,
    }
}

const fn task(method: Method, path: &'static str, access: Access) -> Route {
    Route {
        method,
        path,
        service: Service::PeopleTask,
        access,
        rate: Rate::Normal,
    }
}

/// The API's document lets a `GET` delete a webhook; a `HEAD` must never do that.
const DELETING_GET: &str = "/people-task/webhooks/{id}";

/// Every route, a path that is literal before one with a parameter in the same place.
#[rustfmt::skip]
pub(crate) static ROUTES: &[Route] = &[
    credentials("/user/auth"),
    credentials("/user"),
    credentials("/user/forgot-password"),
    credentials("/user/forgot-password/reset"),
    credentials("/user/verify-email"),
    user(Method::GET, "/user", Token),
    user(Method::POST, "/user/change-password", Token),
    user(Method::POST, "/user/reset-password", Token),
    user(Method::GET, "/users", Token),
    user(Method::GET, "/users/count", Token),
    user(Method::GET, "/users/deletions", Token),
    user(Method::GET, "/users/{userId}", Token),
    user(Method::PUT, "/users/{userId}", Token),
    user(Method::DELETE, "/users/{userId}", Token),
    user(Method::GET, "/users/{userId}/delete-status/{ticket}", Token),
    user(Method::DELETE, "/users/{userId}/delete-status/{ticket}", Token),
    user(Method::GET, "/audit", Token),
    user(Method::GET, "/.well-known/jwks.json", Public),

    task(Method::GET, "/people-task/tasks", TokenOrSecret),
    task(Method::POST, "/people-task/tasks", Token),
    task(Method::GET, "/people-task/tasks-count", TokenOrSecret),
    task(Method::GET, "/people-task/tasks/{id}", TokenOrSecret),
    task(Method::PUT, "/people-task/tasks/{id}", TokenOrSecret),
    task(Method::PUT, "/people-task/tasks/{id}/approve", TokenOrSecret),
    task(Method::PUT, "/people-task/tasks/{id}/reject", TokenOrSecret),
    task(Method::GET, "/people-task/tasks/{id}/webhooks", Token),
    task(Method::GET, "/people-task/tasks/{id}/deliveries", Token),
    task(Method::POST, "/people-task/deliveries/{id}/redeliver", Token),
    task(Method::POST, "/people-task/webhooks", Token),
    task(Method::GET, "/people-task/webhooks/{id}", Token),
    task(Method::DELETE, "/people-task/webhooks/{id}", Token),
    task(Method::GET, "/people-task/audit", Token),
    task(Method::GET, "/.well-known/webhook-keys.json", Public),

    // The paths that newer components of the original call; the service knows this prefix, too.
    task(Method::GET, "/plugins/appmixer/utils/tasks/tasks", TokenOrSecret),
    task(Method::POST, "/plugins/appmixer/utils/tasks/tasks", Token),
    task(Method::GET, "/plugins/appmixer/utils/tasks/tasks-count", TokenOrSecret),
    task(Method::GET, "/plugins/appmixer/utils/tasks/tasks/{id}", TokenOrSecret),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}", TokenOrSecret),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}/approve", TokenOrSecret),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}/reject", TokenOrSecret),
    task(Method::POST, "/plugins/appmixer/utils/tasks/webhooks", Token),
    task(Method::DELETE, "/plugins/appmixer/utils/tasks/webhooks/{id}", Token),
    task(Method::GET, "/plugins/appmixer/utils/tasks/dashboard-url", Token),
];

/// The method and path of every route behind the gateway, for tests.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES
        .iter()
        .map(|route| (route.method.as_str(), route.path))
}

/// The routes by path, in the order of the table.
pub(crate) fn by_path() -> Vec<(&'static str, Vec<&'static Route>)> {
    let mut paths: Vec<(&'static str, Vec<&'static Route>)> = Vec::new();
    for route in ROUTES {
        match paths.iter_mut().find(|(path, _)| *path == route.path) {
            Some((_, routes)) => routes.push(route),
            None => paths.push((route.path, vec![route])),
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use actix_web::http::Method;

    use super::{Access, ROUTES, by_path};

    #[test]
    fn no_route_is_listed_twice_and_no_literal_hides_behind_a_parameter() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((&route.method, route.path)), "{}", route.path);
        }
        let paths: Vec<_> = by_path().into_iter().map(|(path, _)| path).collect();
        let place = |wanted| paths.iter().position(|path| *path == wanted).unwrap();
        assert!(place("/users/count") < place("/users/{userId}"));
        assert!(place("/users/deletions") < place("/users/{userId}"));
    }

    #[test]
    fn a_head_is_taken_wherever_a_get_only_reads() {
        for route in ROUTES {
            let methods: Vec<_> = route.methods().collect();
            let reads = route.method == Method::GET && route.path != "/people-task/webhooks/{id}";
            assert_eq!(methods.contains(&Method::HEAD), reads, "{}", route.path);
        }
    }

    #[test]
    fn internal_paths_are_not_routed_and_only_keys_and_credentials_are_public() {
        assert!(
            ROUTES
                .iter()
                .all(|route| !route.path.starts_with("/internal"))
        );
        let public = ROUTES.iter().filter(|route| route.access == Access::Public);
        let public: Vec<_> = public.map(|route| route.path).collect();
        assert_eq!(
            public,
            [
                "/user/auth",
                "/user",
                "/user/forgot-password",
                "/user/forgot-password/reset",
                "/user/verify-email",
                "/.well-known/jwks.json",
                "/.well-known/webhook-keys.json",
            ]
        );
    }
}
