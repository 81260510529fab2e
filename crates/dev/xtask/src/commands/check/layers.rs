//! Which files may know the database and which may know HTTP.

use super::modules::Package;

/// A rule: only some files name these crates.
pub(super) struct Layer {
    /// The name of the crates in messages.
    pub(super) title: &'static str,
    crates: &'static [&'static str],
    /// The folder whose packages must follow the rule. Empty for all packages.
    only_in: &'static str,
    /// Packages whose every file may name the crates.
    packages: &'static [&'static str],
    files: &'static [&'static str],
}

/// The layers of the architecture.
pub(super) const LAYERS: [Layer; 2] = [
    Layer {
        title: "diesel",
        crates: &["diesel", "diesel_migrations", "r2d2"],
        only_in: "",
        packages: &[
            "crates/database",
            "crates/audit-log",
            "crates/listing",
            "crates/dev/testkit",
        ],
        files: &["store.rs", "_store.rs", "store/", "schema.rs"],
    },
    Layer {
        title: "HTTP",
        crates: &["actix_web", "http_kit"],
        only_in: "services/",
        packages: &[],
        files: &[
            "routes.rs",
            "requests.rs",
            "requests/",
            "responses.rs",
            "error.rs",
            "app.rs",
            "context.rs",
            "problems.rs",
        ],
    },
];

impl Layer {
    /// The files of `package`, which is in `folder`, that break the rule.
    pub(super) fn violations(&self, folder: &str, package: &Package) -> Vec<String> {
        if !folder.starts_with(self.only_in) || self.packages.contains(&folder) {
            return Vec::new();
        }
        package
            .named_crates()
            .filter(|(file, names)| {
                self.crates.iter().any(|name| names.contains(name)) && !self.allows(file)
            })
            .map(|(file, _)| format!("{folder}/src/{file}"))
            .collect()
    }

    fn allows(&self, file: &str) -> bool {
        let name = file.rsplit('/').next().unwrap_or(file);
        self.files.iter().any(|allowed| {
            match (allowed.strip_suffix('/'), allowed.starts_with('_')) {
                (Some(folder), _) => file.split('/').any(|part| part == folder),
                (None, true) => name.ends_with(allowed),
                (None, false) => name == *allowed,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(folder: &str, file: &str, text: &str) -> usize {
        let package = Package::parse(&[(file.to_owned(), text.to_owned())]).unwrap();
        LAYERS
            .iter()
            .map(|layer| layer.violations(folder, &package).len())
            .sum()
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
        assert_eq!(
            violations(
                "crates/values",
                "id.rs",
                "#[diesel(sql_type = Text)] struct X;"
            ),
            1
        );
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
