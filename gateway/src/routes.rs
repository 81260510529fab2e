//! The routes as the gateway registers them.

use std::collections::BTreeMap;

pub use auth::routes::{Access, ROUTES, RateClass, Route, Service, Work};

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
