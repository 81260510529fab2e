//! The table of routes: every path that the gateway passes on to a service.

use std::collections::BTreeMap;

use actix_web::http::Method;

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
    /// The rate limit that it counts towards.
    pub rate: RateClass,
    /// What it makes its service do, if requests of one network must not do it all at once.
    pub work: Option<Work>,
    /// Whether a caller may wait for the end of the task that it names.
    pub waits: bool,
}

impl Route {
    /// The methods that callers may use: its own, and `HEAD` if it only reads (RFC 9110 section 9.1).
    pub(crate) fn methods(&self) -> impl Iterator<Item = Method> {
        std::iter::once(self.method.clone()).chain(self.reads().then_some(Method::HEAD))
    }

    /// Whether it changes nothing.
    pub(crate) fn reads(&self) -> bool {
        self.method == Method::GET && self.path != DELETING_GET
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

#[derive(Debug, Clone, Default)]
pub(crate) struct PerService<T> {
    pub(crate) user: T,
    pub(crate) people_task: T,
}

impl<T> PerService<T> {
    pub(crate) fn new(make: impl Fn(Service) -> T) -> Self {
        Self {
            user: make(Service::User),
            people_task: make(Service::PeopleTask),
        }
    }

    pub(crate) fn of(&self, service: Service) -> &T {
        match service {
            Service::User => &self.user,
            Service::PeopleTask => &self.people_task,
        }
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
}

use Access::{Cookie, Public, Token, TokenOrSecret};

const fn of(service: Service, method: Method, path: &'static str, access: Access) -> Route {
    Route {
        method,
        path,
        service,
        access,
        rate: RateClass::Normal,
        work: Some(Work::Short),
        waits: false,
    }
}

const fn user(method: Method, path: &'static str, access: Access) -> Route {
    of(Service::User, method, path, access)
}

const fn credentials(path: &'static str, access: Access) -> Route {
    let mut route = user(Method::POST, path, access);
    route.rate = RateClass::Credentials;
    // The user service shares its hashing between networks itself.
    route.work = None;
    route
}

const fn task(method: Method, path: &'static str, access: Access) -> Route {
    of(Service::PeopleTask, method, path, access)
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

const fn waiting(mut route: Route) -> Route {
    route.waits = true;
    route
}

/// This `GET` deletes a webhook, for compatibility. A `HEAD` must never do that.
const DELETING_GET: &str = "/people-task/webhooks/{id}";

/// Every route.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    credentials("/user/auth", Public),
    credentials("/session", Cookie),
    user(Method::DELETE, "/session", Cookie),
    user(Method::POST, "/session/token", Cookie),
    user(Method::GET, "/user/sessions", Token),
    user(Method::DELETE, "/user/sessions/{sessionId}", Token),
    user(Method::GET, "/user/keys", Token),
    making_keys(user(Method::POST, "/user/keys", Token)),
    user(Method::DELETE, "/user/keys/{keyId}", Token),
    credentials("/user", Public),
    credentials("/user/change-password", Token),
    credentials("/user/forgot-password", Public),
    credentials("/user/forgot-password/reset", Public),
    credentials("/user/verify-email", Public),
    credentials("/user/verify-email/resend", Token),
    user(Method::GET, "/user", Token),
    user(Method::POST, "/user/reset-password", Token),
    long(user(Method::GET, "/users", Token)),
    long(user(Method::GET, "/users/count", Token)),
    long(user(Method::GET, "/users/deletions", Token)),
    long(user(Method::GET, "/users/queues", Token)),
    user(Method::POST, "/users/deletions/retry", Token),
    long(user(Method::GET, "/users/keys", Token)),
    long(user(Method::POST, "/users/keys/confirm", Token)),
    user(Method::GET, "/users/{userId}", Token),
    user(Method::PUT, "/users/{userId}", Token),
    user(Method::DELETE, "/users/{userId}", Token),
    user(Method::POST, "/users/{userId}/revoke-tokens", Token),
    user(Method::GET, "/users/{userId}/keys", Token),
    user(Method::POST, "/users/{userId}/keys", Token),
    user(Method::DELETE, "/users/{userId}/keys/{keyId}", Token),
    user(Method::POST, "/users/{userId}/keys/{keyId}/confirm", Token),
    user(Method::GET, "/users/{userId}/delete-status/{ticket}", Token),
    user(Method::DELETE, "/users/{userId}/delete-status/{ticket}", Token),
    long(user(Method::GET, "/audit", Token)),
    user(Method::GET, "/.well-known/jwks.json", Public),

    long(task(Method::GET, "/people-task/tasks", TokenOrSecret)),
    task(Method::POST, "/people-task/tasks", Token),
    long(task(Method::GET, "/people-task/tasks-count", TokenOrSecret)),
    waiting(task(Method::GET, "/people-task/tasks/{id}", TokenOrSecret)),
    task(Method::PUT, "/people-task/tasks/{id}", TokenOrSecret),
    task(Method::PUT, "/people-task/tasks/{id}/approve", TokenOrSecret),
    task(Method::PUT, "/people-task/tasks/{id}/reject", TokenOrSecret),
    task(Method::GET, "/people-task/tasks/{id}/cancel", TokenOrSecret),
    task(Method::POST, "/people-task/tasks/{id}/cancel", TokenOrSecret),
    task(Method::GET, "/people-task/tasks/{id}/webhooks", Token),
    long(task(Method::GET, "/people-task/tasks/{id}/deliveries", Token)),
    long(task(Method::GET, "/people-task/deliveries", Token)),
    long(task(Method::GET, "/people-task/deliveries/hosts", Token)),
    task(Method::POST, "/people-task/deliveries/pause", Token),
    task(Method::POST, "/people-task/deliveries/resume", Token),
    long(task(Method::GET, "/people-task/queues", Token)),
    long(task(Method::POST, "/people-task/deliveries/redeliver", Token)),
    long(task(Method::POST, "/people-task/deliveries/cancel", Token)),
    task(Method::POST, "/people-task/deliveries/{id}/redeliver", Token),
    task(Method::POST, "/people-task/deliveries/{id}/cancel", Token),
    lookup(task(Method::POST, "/people-task/webhooks", Token)),
    task(Method::GET, "/people-task/webhooks/{id}", Token),
    // It waits for a receiver.
    lookup(task(Method::POST, "/people-task/webhooks/{id}/test", Token)),
    task(Method::DELETE, "/people-task/webhooks/{id}", Token),
    long(task(Method::GET, "/people-task/audit", Token)),
    task(Method::GET, "/people-task/reminders/unsubscribe", Public),
    task(Method::POST, "/people-task/reminders/unsubscribe", Public),
    task(Method::GET, "/.well-known/webhook-keys.json", Public),

    // The Appmixer plugin paths, which the people-task service knows, too.
    long(task(Method::GET, "/plugins/appmixer/utils/tasks/tasks", TokenOrSecret)),
    task(Method::POST, "/plugins/appmixer/utils/tasks/tasks", Token),
    long(task(Method::GET, "/plugins/appmixer/utils/tasks/tasks-count", TokenOrSecret)),
    waiting(task(Method::GET, "/plugins/appmixer/utils/tasks/tasks/{id}", TokenOrSecret)),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}", TokenOrSecret),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}/approve", TokenOrSecret),
    task(Method::PUT, "/plugins/appmixer/utils/tasks/tasks/{id}/reject", TokenOrSecret),
    task(Method::POST, "/plugins/appmixer/utils/tasks/tasks/{id}/cancel", TokenOrSecret),
    lookup(task(Method::POST, "/plugins/appmixer/utils/tasks/webhooks", Token)),
    task(Method::DELETE, "/plugins/appmixer/utils/tasks/webhooks/{id}", Token),
    task(Method::GET, "/plugins/appmixer/utils/tasks/dashboard-url", Token),
];

/// The routes of each path, in the order in which they are tried: `{` comes after every character of a literal.
type Paths = BTreeMap<&'static str, Vec<&'static Route>>;

/// The paths grouped by what is before their first parameter. Those without one are in the first group, `None`, because a literal
/// path is tried before those with a parameter.
pub(crate) fn by_prefix() -> BTreeMap<Option<&'static str>, Paths> {
    let mut prefixes: BTreeMap<_, Paths> = BTreeMap::new();
    for route in ROUTES {
        let prefix = route.path.split_once("/{").map(|(prefix, _)| prefix);
        let paths = prefixes.entry(prefix).or_default();
        paths.entry(route.path).or_default().push(route);
    }
    prefixes
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use actix_web::http::Method;
    use auth::{KEY_ROUTES, key_route};

    use super::{Access, ROUTES, by_prefix};

    #[test]
    fn routes_are_unique_and_literal_paths_come_first() {
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((&route.method, route.path)), "{}", route.path);
        }
        let prefixes = by_prefix();
        let paths: Vec<_> = prefixes.values().flat_map(BTreeMap::keys).collect();
        let position = |wanted| paths.iter().position(|path| **path == wanted).unwrap();
        assert!(position("/users/count") < position("/users/{userId}"));
        assert!(position("/users/deletions") < position("/users/{userId}"));
        let hides = |first: &str, second: &str| {
            let (first, second) = (first.split('/'), second.split('/'));
            first.clone().count() == second.clone().count()
                && first.zip(second).all(|(a, b)| a == b || a.starts_with('{'))
        };
        for paths in prefixes.values() {
            for (number, first) in paths.keys().enumerate() {
                let mut later = paths.keys().skip(number + 1);
                assert!(!later.any(|second| hides(first, second)), "{first}");
            }
        }
    }

    #[test]
    fn no_scope_hides_paths_of_another() {
        let mut prefixes = by_prefix().into_keys();
        assert_eq!(prefixes.next(), Some(None));
        let prefixes: Vec<_> = prefixes
            .flatten()
            .map(|prefix| format!("{prefix}/"))
            .collect();
        for (number, prefix) in prefixes.iter().enumerate() {
            let mut later = prefixes.iter().skip(number + 1);
            assert!(!later.any(|other| other.starts_with(prefix)), "{prefix}");
        }
    }

    #[test]
    fn it_is_said_of_every_route_that_takes_a_token_what_it_takes_of_keys() {
        for route in ROUTES {
            let takes_token = matches!(route.access, Access::Token | Access::TokenOrSecret);
            let creates_users = route.method == Method::POST && route.path == "/user";
            let said = key_route(&route.method, route.path).is_some();
            assert_eq!(said, takes_token || creates_users, "{}", route.path);
        }
        let exists = |method: &Method, path| {
            let mut routes = ROUTES.iter();
            routes.any(|route| route.method == *method && route.path == path)
        };
        for said in KEY_ROUTES {
            assert!(exists(&said.method, said.path), "{}", said.path);
        }
    }

    #[test]
    fn every_get_that_only_reads_accepts_head() {
        for route in ROUTES {
            let methods: Vec<_> = route.methods().collect();
            let reads = route.method == Method::GET && route.path != "/people-task/webhooks/{id}";
            assert_eq!(methods.contains(&Method::HEAD), reads, "{}", route.path);
        }
    }

    #[test]
    fn internal_paths_are_not_routed_and_only_keys_credentials_and_signed_links_are_public() {
        assert!(
            ROUTES
                .iter()
                .all(|route| !route.path.starts_with("/internal"))
        );
        let mut of_cookie = ROUTES.iter().filter(|route| route.access == Access::Cookie);
        assert!(of_cookie.all(|route| matches!(route.path, "/session" | "/session/token")));
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
                "/people-task/reminders/unsubscribe",
                "/people-task/reminders/unsubscribe",
                "/.well-known/webhook-keys.json",
            ]
        );
    }
}
