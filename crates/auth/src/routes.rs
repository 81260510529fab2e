//! The table of routes: every path that the gateway passes on to a service, who may call it, and which API keys. A call that it
//! does not list is closed to keys, so none is open because it was forgotten.

use actix_web::http::Method;

use crate::KeyScope;

/// One method of one path.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with parameters in braces. It is the same at the service.
    pub path: &'static str,
    /// The service that handles it.
    pub service: Service,
    /// The credentials that a caller needs.
    pub access: Access,
    /// The scopes that an API key needs, all of them; none if no key may make the call, or it reads none.
    pub keys: &'static [KeyScope],
    /// The rate limit that it counts towards.
    pub rate: RateClass,
    /// What it makes its service do, if requests of one network must not do it all at once.
    pub work: Option<Work>,
    /// Whether a caller may wait for the end of the task that it names.
    pub waits: bool,
}

impl Route {
    /// The methods that callers may use: its own, and `HEAD` if it only reads (RFC 9110 section 9.1).
    pub fn methods(&self) -> impl Iterator<Item = Method> {
        std::iter::once(self.method.clone()).chain(self.reads().then_some(Method::HEAD))
    }

    /// Whether it changes nothing.
    pub fn reads(&self) -> bool {
        self.method == Method::GET && self.path != DELETING_GET
    }

    /// Whether it takes a token, and so also a key, if only to refuse it.
    pub fn takes_token(&self) -> bool {
        matches!(self.access, Token | TokenOrSecret) || !self.keys.is_empty()
    }
}

values::names! {
    /// A service behind the gateway, by the name of its process.
    #[derive(Hash)]
    pub enum Service {
        /// The user service.
        User = "user-service",
        /// The people-task service.
        PeopleTask = "people-task-service",
    }
}

/// The credentials that the gateway requires. The services check again, and more strictly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// None: an `Authorization` header is forwarded unread.
    Public,
    /// A valid token.
    Token,
    /// A valid token, or none: then the service looks for a task's secret.
    TokenOrSecret,
    /// The cookie of a browser's session, which no other route gets. The user service checks it, and that the request comes
    /// from a page of this server.
    Cookie,
}

/// The rate limit that a route counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateClass {
    /// The limit of most routes.
    Normal,
    /// The stricter limit of routes with which a caller could guess passwords or flood mailboxes. Administrators'
    /// routes that set a password reveal nothing, and the user service shares its hashing between addresses.
    Credentials,
    /// That of the route with which users make API keys: every process holds those that have ended.
    Keys,
}

/// What a request makes its service do. Requests of one client network wait only for others with the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Reads or writes a few rows.
    Short,
    /// Looks at many rows, or carries a long body.
    Long,
    /// Waits for others: looks up a host name, which takes as long as its name servers want, or tries a webhook.
    Lookup,
    /// Creates a task, which may look up the host names of its webhooks.
    Creation,
    /// A lookup or creation with a long body, which takes long even if nothing waits.
    LongLookup,
}

impl Work {
    /// What it is if the body is long.
    #[must_use]
    pub fn with_long_body(self) -> Self {
        match self {
            Self::Short | Self::Long => Self::Long,
            Self::Lookup | Self::Creation | Self::LongLookup => Self::LongLookup,
        }
    }
}

use Access::{Cookie, Public, Token, TokenOrSecret};
use KeyScope::{Admin, TasksDecide, TasksRead, TasksWrite, UsersRead, UsersWrite};

type Keys = &'static [KeyScope];

/// No key may make the call: it reads no token, or is about keys, sessions, passwords or addresses.
const CLOSED: Keys = &[];

const fn of(
    service: Service,
    method: Method,
    path: &'static str,
    access: Access,
    keys: Keys,
) -> Route {
    Route {
        method,
        path,
        service,
        access,
        keys,
        rate: RateClass::Normal,
        work: Some(Work::Short),
        waits: false,
    }
}

const fn user(method: Method, path: &'static str, access: Access, keys: Keys) -> Route {
    of(Service::User, method, path, access, keys)
}

const fn credentials(path: &'static str, access: Access, keys: Keys) -> Route {
    let mut route = user(Method::POST, path, access, keys);
    route.rate = RateClass::Credentials;
    // The user service shares its hashing between networks itself.
    route.work = None;
    route
}

const fn task(method: Method, path: &'static str, access: Access, keys: Keys) -> Route {
    of(Service::PeopleTask, method, path, access, keys)
}

const fn making_keys(mut route: Route) -> Route {
    route.rate = RateClass::Keys;
    route
}

/// A route that lists or counts.
const fn long(mut route: Route) -> Route {
    route.work = Some(Work::Long);
    route
}

const fn lookup(mut route: Route) -> Route {
    route.work = Some(Work::Lookup);
    route
}

const fn creation(mut route: Route) -> Route {
    route.work = Some(Work::Creation);
    route
}

const fn waiting(mut route: Route) -> Route {
    route.waits = true;
    route
}

/// This `GET` deletes a webhook, for compatibility. A `HEAD` must never do that.
const DELETING_GET: &str = "/people-task/webhooks/{id}";

/// Every route.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    credentials("/user/auth", Public, CLOSED),
    credentials("/session", Cookie, CLOSED),
    user(Method::DELETE, "/session", Cookie, CLOSED),
    user(Method::POST, "/session/token", Cookie, CLOSED),
    user(Method::GET, "/user/sessions", Token, CLOSED),
    user(Method::DELETE, "/user/sessions/{sessionId}", Token, CLOSED),
    user(Method::GET, "/user/keys", Token, CLOSED),
    making_keys(user(Method::POST, "/user/keys", Token, CLOSED)),
    user(Method::DELETE, "/user/keys/{keyId}", Token, CLOSED),
    credentials("/user", Public, &[UsersWrite]),
    credentials("/user/change-password", Token, CLOSED),
    credentials("/user/forgot-password", Public, CLOSED),
    credentials("/user/forgot-password/reset", Public, CLOSED),
    credentials("/user/verify-email", Public, CLOSED),
    credentials("/user/verify-email/resend", Token, CLOSED),
    user(Method::GET, "/user", Token, &[UsersRead]),
    user(Method::POST, "/user/reset-password", Token, CLOSED),
    long(user(Method::GET, "/users", Token, &[UsersRead, Admin])),
    long(user(Method::GET, "/users/count", Token, &[UsersRead, Admin])),
    long(user(Method::GET, "/users/deletions", Token, &[UsersRead, Admin])),
    long(user(Method::GET, "/users/queues", Token, &[UsersRead, Admin])),
    user(Method::POST, "/users/deletions/retry", Token, &[UsersWrite, Admin]),
    long(user(Method::GET, "/users/keys", Token, CLOSED)),
    long(user(Method::POST, "/users/keys/confirm", Token, CLOSED)),
    user(Method::GET, "/users/{userId}", Token, &[UsersRead, Admin]),
    user(Method::PUT, "/users/{userId}", Token, &[UsersWrite, Admin]),
    user(Method::DELETE, "/users/{userId}", Token, &[UsersWrite, Admin]),
    user(Method::POST, "/users/{userId}/revoke-tokens", Token, CLOSED),
    user(Method::GET, "/users/{userId}/keys", Token, CLOSED),
    user(Method::POST, "/users/{userId}/keys", Token, CLOSED),
    user(Method::DELETE, "/users/{userId}/keys/{keyId}", Token, CLOSED),
    user(Method::POST, "/users/{userId}/keys/{keyId}/confirm", Token, CLOSED),
    user(Method::GET, "/users/{userId}/delete-status/{ticket}", Token, &[UsersRead, Admin]),
    user(Method::DELETE, "/users/{userId}/delete-status/{ticket}", Token, &[UsersWrite, Admin]),
    long(user(Method::GET, "/audit", Token, &[UsersRead, Admin])),
    user(Method::GET, "/.well-known/jwks.json", Public, CLOSED),

    long(task(Method::GET, "/people-task/tasks", TokenOrSecret, &[TasksRead])),
    creation(task(Method::POST, "/people-task/tasks", Token, &[TasksWrite])),
    long(task(Method::GET, "/people-task/tasks-count", TokenOrSecret, &[TasksRead])),
    waiting(task(Method::GET, "/people-task/tasks/{id}", TokenOrSecret, &[TasksRead])),
    task(Method::PUT, "/people-task/tasks/{id}", TokenOrSecret, &[TasksWrite]),
    task(Method::PUT, "/people-task/tasks/{id}/approve", TokenOrSecret, &[TasksDecide]),
    task(Method::PUT, "/people-task/tasks/{id}/reject", TokenOrSecret, &[TasksDecide]),
    task(Method::GET, "/people-task/tasks/{id}/cancel", TokenOrSecret, &[TasksRead]),
    task(Method::POST, "/people-task/tasks/{id}/cancel", TokenOrSecret, &[TasksWrite]),
    task(Method::GET, "/people-task/tasks/{id}/webhooks", Token, &[TasksRead]),
    long(task(Method::GET, "/people-task/tasks/{id}/deliveries", Token, &[TasksRead])),
    long(task(Method::GET, "/people-task/deliveries", Token, &[TasksRead, Admin])),
    long(task(Method::GET, "/people-task/deliveries/hosts", Token, &[TasksRead, Admin])),
    task(Method::POST, "/people-task/deliveries/pause", Token, &[TasksWrite, Admin]),
    task(Method::POST, "/people-task/deliveries/resume", Token, &[TasksWrite, Admin]),
    long(task(Method::GET, "/people-task/queues", Token, &[TasksRead, Admin])),
    long(task(Method::POST, "/people-task/deliveries/redeliver", Token, &[TasksWrite, Admin])),
    long(task(Method::POST, "/people-task/deliveries/cancel", Token, &[TasksWrite, Admin])),
    task(Method::POST, "/people-task/deliveries/{id}/redeliver", Token, &[TasksWrite]),
    task(Method::POST, "/people-task/deliveries/{id}/cancel", Token, &[TasksWrite, Admin]),
    lookup(task(Method::POST, "/people-task/webhooks", Token, &[TasksWrite])),
    task(Method::GET, "/people-task/webhooks/{id}", Token, &[TasksWrite]),
    // It waits for a receiver.
    lookup(task(Method::POST, "/people-task/webhooks/{id}/test", Token, &[TasksWrite])),
    task(Method::DELETE, "/people-task/webhooks/{id}", Token, &[TasksWrite]),
    long(task(Method::GET, "/people-task/audit", Token, &[TasksRead, Admin])),
    task(Method::GET, "/people-task/reminders/unsubscribe", Public, CLOSED),
    task(Method::POST, "/people-task/reminders/unsubscribe", Public, CLOSED),
    task(Method::GET, "/.well-known/webhook-keys.json", Public, CLOSED),

    // The Appmixer plugin paths.
    long(task(Method::GET, "/plugins/appmixer/utils/tasks/tasks", TokenOrSecret, &[TasksRead])),
    creation(task(Method::POST, "/plugins/appmixer/utils/tasks/tasks", Token, &[TasksWrite])),
    long(task(Method::GET, "/plugins/appmixer/utils/tasks/tasks-count", TokenOrSecret, &[TasksRead])),
    waiting(task(Method::GET, "/plugins/appmixer/utils/tasks/tasks/{id}", TokenOrSecret, &[TasksRead])),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}", TokenOrSecret, &[TasksWrite]),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}/approve", TokenOrSecret, &[TasksDecide]),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}/reject", TokenOrSecret, &[TasksDecide]),
    task(Method::POST, "/plugins/appmixer/utils/tasks/tasks/{id}/cancel", TokenOrSecret, &[TasksWrite]),
    lookup(task(Method::POST, "/plugins/appmixer/utils/tasks/webhooks", Token, &[TasksWrite])),
    task(Method::DELETE, "/plugins/appmixer/utils/tasks/webhooks/{id}", Token, &[TasksWrite]),
    task(Method::GET, "/plugins/appmixer/utils/tasks/dashboard-url", Token, &[TasksRead]),
];

/// The scopes that an API key needs to make a call, all of them; `None` if no key may. The path is as it is registered.
pub(crate) fn key_scopes(method: &Method, path: &str) -> Option<Keys> {
    let method = match *method {
        Method::HEAD => &Method::GET,
        _ => method,
    };
    let mut routes = ROUTES.iter();
    let route = routes.find(|route| route.method == *method && route.path == path)?;
    (!route.keys.is_empty()).then_some(route.keys)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use actix_web::http::Method;

    use super::{Access, ROUTES, key_scopes};
    use crate::KeyScope;

    #[test]
    fn every_call_has_one_entry() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((&route.method, route.path)), "{}", route.path);
        }
    }

    #[test]
    fn a_head_and_a_plugin_path_need_what_the_call_needs() {
        let read = Some(&[KeyScope::TasksRead][..]);
        assert_eq!(key_scopes(&Method::HEAD, "/people-task/tasks/{id}"), read);
        let mut plugin_paths = 0;
        for route in ROUTES {
            let path = route.path.strip_prefix("/plugins/appmixer/utils/tasks/");
            let Some(path) = path.filter(|path| *path != "dashboard-url") else {
                continue;
            };
            let task = key_scopes(&route.method, &format!("/people-task/{path}"));
            assert_eq!(Some(route.keys), task, "{path}");
            plugin_paths += 1;
        }
        assert_eq!(plugin_paths, 10);
        let plugin = "/plugins/appmixer/utils/tasks/tasks/{id}";
        assert_eq!(key_scopes(&Method::GET, plugin), read);
        let decide = Some(&[KeyScope::TasksDecide][..]);
        let plugin = "/plugins/appmixer/utils/tasks/tasks/{id}/approve";
        assert_eq!(key_scopes(&Method::PUT, plugin), decide);
    }

    #[test]
    fn a_call_that_was_forgotten_is_closed() {
        assert!(key_scopes(&Method::PATCH, "/people-task/tasks/{id}").is_none());
        assert!(key_scopes(&Method::GET, "/people-task/forgotten").is_none());
    }

    #[test]
    fn of_the_calls_that_need_no_token_keys_may_only_create_users() {
        for route in ROUTES {
            let needs_token = matches!(route.access, Access::Token | Access::TokenOrSecret);
            let creates_users = route.method == Method::POST && route.path == "/user";
            let expected = needs_token || creates_users;
            assert_eq!(route.takes_token(), expected, "{}", route.path);
        }
    }

    #[test]
    fn deciding_needs_its_own_scope_and_nothing_else_does() {
        for route in ROUTES {
            let decides = route.path.ends_with("/approve") || route.path.ends_with("/reject");
            let needed = route.keys.contains(&KeyScope::TasksDecide);
            assert_eq!(needed, decides, "{}", route.path);
        }
    }
}
