//! The calls that are open to API keys, and the scopes that each needs: one table for the gateway, the services and the
//! documents. A call that it does not list is closed to keys, so none is open because it was forgotten.

use actix_web::http::{Method, StatusCode};
use http_kit::Problem;

values::names! {
    /// What an API key may do, within what its user may do.
    pub enum KeyScope {
        /// Reads tasks, webhooks and deliveries.
        TasksRead = "tasks:read",
        /// Creates and changes tasks and their webhooks, and withdraws tasks.
        TasksWrite = "tasks:write",
        /// Approves and rejects tasks.
        TasksDecide = "tasks:decide",
        /// Reads users.
        UsersRead = "users:read",
        /// Creates, changes and deletes users.
        UsersWrite = "users:write",
        /// Acts as the administrator that the user is, in addition to another scope.
        Admin = "admin",
    }
}

/// A call that takes a token, and what it takes of keys.
#[derive(Debug)]
pub struct KeyRoute {
    /// The method. `HEAD` counts as `GET`.
    pub method: Method,
    /// The path as it is registered, with parameters in braces.
    pub path: &'static str,
    /// The scopes that a key needs, all of them; none if the call is closed to keys.
    pub scopes: &'static [KeyScope],
}

const fn of(method: Method, path: &'static str, scopes: &'static [KeyScope]) -> KeyRoute {
    KeyRoute {
        method,
        path,
        scopes,
    }
}

use KeyScope::{Admin, TasksDecide, TasksRead, TasksWrite, UsersRead, UsersWrite};

/// No key may make the call: it is about keys, sessions, passwords or addresses.
const CLOSED: &[KeyScope] = &[];

/// Every call that takes a token.
#[rustfmt::skip]
pub static KEY_ROUTES: &[KeyRoute] = &[
    of(Method::GET, "/user", &[UsersRead]),
    of(Method::POST, "/user", &[UsersWrite]),
    of(Method::GET, "/users", &[UsersRead, Admin]),
    of(Method::GET, "/users/count", &[UsersRead, Admin]),
    of(Method::GET, "/users/deletions", &[UsersRead, Admin]),
    of(Method::POST, "/users/deletions/retry", &[UsersWrite, Admin]),
    of(Method::GET, "/users/queues", &[UsersRead, Admin]),
    of(Method::GET, "/users/{userId}", &[UsersRead, Admin]),
    of(Method::PUT, "/users/{userId}", &[UsersWrite, Admin]),
    of(Method::DELETE, "/users/{userId}", &[UsersWrite, Admin]),
    of(Method::GET, "/users/{userId}/delete-status/{ticket}", &[UsersRead, Admin]),
    of(Method::DELETE, "/users/{userId}/delete-status/{ticket}", &[UsersWrite, Admin]),
    of(Method::GET, "/audit", &[UsersRead, Admin]),
    of(Method::GET, "/user/keys", CLOSED),
    of(Method::POST, "/user/keys", CLOSED),
    of(Method::DELETE, "/user/keys/{keyId}", CLOSED),
    of(Method::GET, "/users/keys", CLOSED),
    of(Method::POST, "/users/keys/confirm", CLOSED),
    of(Method::GET, "/users/{userId}/keys", CLOSED),
    of(Method::POST, "/users/{userId}/keys", CLOSED),
    of(Method::DELETE, "/users/{userId}/keys/{keyId}", CLOSED),
    of(Method::POST, "/users/{userId}/keys/{keyId}/confirm", CLOSED),
    of(Method::GET, "/user/sessions", CLOSED),
    of(Method::DELETE, "/user/sessions/{sessionId}", CLOSED),
    of(Method::POST, "/users/{userId}/revoke-tokens", CLOSED),
    of(Method::POST, "/user/change-password", CLOSED),
    of(Method::POST, "/user/reset-password", CLOSED),
    of(Method::POST, "/user/verify-email/resend", CLOSED),

    of(Method::GET, "/people-task/tasks", &[TasksRead]),
    of(Method::POST, "/people-task/tasks", &[TasksWrite]),
    of(Method::GET, "/people-task/tasks-count", &[TasksRead]),
    of(Method::GET, "/people-task/tasks/{id}", &[TasksRead]),
    of(Method::PUT, "/people-task/tasks/{id}", &[TasksWrite]),
    of(Method::PUT, "/people-task/tasks/{id}/approve", &[TasksDecide]),
    of(Method::PUT, "/people-task/tasks/{id}/reject", &[TasksDecide]),
    of(Method::GET, "/people-task/tasks/{id}/cancel", &[TasksRead]),
    of(Method::POST, "/people-task/tasks/{id}/cancel", &[TasksWrite]),
    of(Method::GET, "/people-task/tasks/{id}/webhooks", &[TasksRead]),
    of(Method::GET, "/people-task/tasks/{id}/deliveries", &[TasksRead]),
    of(Method::POST, "/people-task/webhooks", &[TasksWrite]),
    of(Method::GET, "/people-task/webhooks/{id}", &[TasksWrite]),
    of(Method::DELETE, "/people-task/webhooks/{id}", &[TasksWrite]),
    of(Method::POST, "/people-task/webhooks/{id}/test", &[TasksWrite]),
    of(Method::POST, "/people-task/deliveries/{id}/redeliver", &[TasksWrite]),
    of(Method::POST, "/people-task/deliveries/{id}/cancel", &[TasksWrite, Admin]),
    of(Method::GET, "/people-task/deliveries", &[TasksRead, Admin]),
    of(Method::GET, "/people-task/deliveries/hosts", &[TasksRead, Admin]),
    of(Method::POST, "/people-task/deliveries/pause", &[TasksWrite, Admin]),
    of(Method::POST, "/people-task/deliveries/resume", &[TasksWrite, Admin]),
    of(Method::POST, "/people-task/deliveries/redeliver", &[TasksWrite, Admin]),
    of(Method::POST, "/people-task/deliveries/cancel", &[TasksWrite, Admin]),
    of(Method::GET, "/people-task/queues", &[TasksRead, Admin]),
    of(Method::GET, "/people-task/audit", &[TasksRead, Admin]),
    of(Method::GET, "/plugins/appmixer/utils/tasks/dashboard-url", &[TasksRead]),
];

/// Appmixer's paths, which are those of tasks under another prefix.
const PLUGIN_PREFIX: &str = "/plugins/appmixer/utils/tasks/";
const TASK_PREFIX: &str = "/people-task/";

/// The entry of a call, by its method and its path as it is registered.
pub fn key_route(method: &Method, path: &str) -> Option<&'static KeyRoute> {
    let method = match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    };
    let find = |path: &str| {
        let mut routes = KEY_ROUTES.iter();
        routes.find(|route| route.method == *method && route.path == path)
    };
    find(path).or_else(|| {
        let task = path.strip_prefix(PLUGIN_PREFIX)?;
        find(&format!("{TASK_PREFIX}{task}"))
    })
}

/// `403 key-not-accepted`: the call takes tokens of people, but no API keys.
pub fn key_not_accepted() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "key-not-accepted",
        "API keys cannot make this call: keys, sessions, passwords and addresses are for people who sign in.",
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use actix_web::http::Method;

    use super::{KEY_ROUTES, KeyScope, key_route};

    #[test]
    fn every_call_has_one_entry() {
        let mut seen = HashSet::new();
        for route in KEY_ROUTES {
            assert!(seen.insert((&route.method, route.path)), "{}", route.path);
        }
    }

    #[test]
    fn a_head_and_a_plugin_path_need_what_the_call_needs() {
        let scopes = |method: Method, path| key_route(&method, path).map(|route| route.scopes);
        let read = Some(&[KeyScope::TasksRead][..]);
        assert_eq!(scopes(Method::HEAD, "/people-task/tasks/{id}"), read);
        let plugin = "/plugins/appmixer/utils/tasks/tasks/{id}";
        assert_eq!(scopes(Method::GET, plugin), read);
        let decide = Some(&[KeyScope::TasksDecide][..]);
        assert_eq!(
            scopes(
                Method::PUT,
                "/plugins/appmixer/utils/tasks/tasks/{id}/approve"
            ),
            decide
        );
    }

    #[test]
    fn a_call_that_was_forgotten_is_closed() {
        assert!(key_route(&Method::PATCH, "/people-task/tasks/{id}").is_none());
        assert!(key_route(&Method::GET, "/people-task/forgotten").is_none());
    }

    #[test]
    fn deciding_needs_its_own_scope_and_nothing_else_does() {
        for route in KEY_ROUTES {
            let decides = route.path.ends_with("/approve") || route.path.ends_with("/reject");
            let needed = route.scopes.contains(&KeyScope::TasksDecide);
            assert_eq!(needed, decides, "{}", route.path);
        }
    }
}
