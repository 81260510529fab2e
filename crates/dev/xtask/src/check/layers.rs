//! Which files may know the database and which may know HTTP.

use super::source::Package;

/// Crates that only some files name.
struct Layer {
    title: &'static str,
    crates: &'static [&'static str],
    /// Where the rule holds.
    only_in: &'static str,
    /// Packages, folders, files and endings of files that may name the crates.
    allowed: &'static [&'static str],
}

const LAYERS: [Layer; 2] = [
    Layer {
        title: "diesel",
        crates: &["diesel", "diesel_migrations", "r2d2"],
        only_in: "",
        allowed: &[
            "crates/database/",
            "crates/audit-log/",
            "crates/listing/",
            "crates/dev/testkit/",
            "/store.rs",
            "_store.rs",
            "/store/",
            "/schema.rs",
            // Types of columns.
            "crates/values/src/email.rs",
            "crates/values/src/id.rs",
            "crates/values/src/timestamp.rs",
            "services/people-task-service/src/status.rs",
        ],
    },
    Layer {
        title: "HTTP",
        crates: &["actix_web", "http_kit"],
        only_in: "services/",
        allowed: &[
            "/routes.rs",
            "/requests.rs",
            "/requests/",
            "/responses.rs",
            "/error.rs",
            "/app.rs",
            "/context.rs",
            // A middleware that rewrites paths, two extractors, and a field of requests and responses.
            "services/people-task-service/src/plugin_paths.rs",
            "services/people-task-service/src/tasks/credentials.rs",
            "services/people-task-service/src/tasks/metadata.rs",
            "services/people-task-service/src/tasks/projection.rs",
        ],
    },
];

/// Returns a message for each file of the package in `folder` that breaks a rule.
pub(super) fn check(folder: &str, package: &Package) -> Vec<String> {
    let mut errors = Vec::new();
    for layer in LAYERS
        .iter()
        .filter(|layer| folder.starts_with(layer.only_in))
    {
        for (file, paths) in package {
            let file = format!("{folder}/src/{file}");
            let mut first = paths.iter().filter_map(|path| path.first());
            if first.any(|name| layer.crates.contains(&name.as_str()))
                && !layer.allowed.iter().any(|allowed| file.contains(allowed))
            {
                errors.push(format!("{file} names {}", layer.title));
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::source;

    fn violations(folder: &str, file: &str, text: &str) -> usize {
        let package = source::parse([(file.to_owned(), text.to_owned())]);
        check(folder, &package).len()
    }

    #[test]
    fn only_stores_name_diesel() {
        let text = "use diesel::prelude::*;";
        let service = "services/some-service";
        assert_eq!(violations(service, "tasks/create.rs", text), 1);
        for file in [
            "tasks/store.rs",
            "tasks/task_store.rs",
            "tasks/store/rows.rs",
            "schema.rs",
        ] {
            assert_eq!(violations(service, file, text), 0, "{file}");
        }
        assert_eq!(violations("crates/database", "pool.rs", text), 0);
        let attribute = "#[diesel(sql_type = Text)] struct X;";
        assert_eq!(violations("crates/values", "ids.rs", attribute), 1);
    }

    #[test]
    fn rules_of_a_service_do_not_name_http() {
        let text = "fn f() { actix_web::rt::spawn(g()) }";
        assert_eq!(
            violations("services/some-service", "tasks/create.rs", text),
            1
        );
        assert_eq!(
            violations("services/some-service", "tasks/routes.rs", text),
            0
        );
        assert_eq!(violations("gateway", "proxy.rs", text), 0);
    }
}
