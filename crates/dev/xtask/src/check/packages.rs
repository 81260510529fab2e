//! Which packages may depend on which.

use std::collections::{BTreeMap, BTreeSet};

use super::read;
use crate::build::{cargo, root};

/// What the gateway must not depend on, even indirectly.
const NOT_IN_THE_GATEWAY: [&str; 7] = [
    "diesel",
    "diesel_migrations",
    "r2d2",
    "pq-sys",
    "lapin",
    "database",
    "messaging",
];

/// Each package, by its folder, and the packages of the workspace that it depends on, tests left out.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// Returns a message for each rule that is broken.
pub(super) fn check(folders: &[String]) -> Result<Vec<String>, String> {
    let mut dependencies = Dependencies::new();
    for folder in folders {
        let manifest = read(&root().join(folder).join("Cargo.toml"))?;
        let is_used = |it: &&String| {
            normal_dependencies(&manifest).any(|name| it.ends_with(&format!("/{name}")))
        };
        dependencies.insert(
            folder.clone(),
            folders.iter().filter(is_used).cloned().collect(),
        );
    }
    let mut errors = check_own(&dependencies);
    errors.extend(check_gateway()?);
    Ok(errors)
}

/// The names in the table `[dependencies]` of a manifest.
fn normal_dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]");
    let lines = lines.skip(1).take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.split([' ', '.', '=']).next())
        .filter(|name| !name.is_empty())
}

fn check_own(dependencies: &Dependencies) -> Vec<String> {
    let mut errors = Vec::new();
    for package in dependencies.keys() {
        let mut reached = BTreeSet::from([package]);
        for _ in dependencies {
            let next = reached
                .iter()
                .filter_map(|it| dependencies.get(*it))
                .flatten();
            reached.extend(next.collect::<Vec<_>>());
        }
        for used in reached.into_iter().filter(|used| *used != package) {
            let are_in =
                |one: &str, other: &str| package.starts_with(one) && used.starts_with(other);
            let reason = if are_in("services/", "services/") {
                "services may share only crates"
            } else if are_in("", "crates/dev/") && !package.starts_with("crates/dev/") {
                "the product does not contain development tools"
            } else {
                continue;
            };
            errors.push(format!("{package} depends on {used}, but {reason}"));
        }
    }
    errors
}

fn check_gateway() -> Result<Vec<String>, String> {
    let mut tree = cargo("tree");
    tree.args(["--package", "gateway", "--edges", "normal"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    let output = tree
        .output()
        .map_err(|error| format!("running cargo tree: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    if !names.contains("gateway") {
        return Err(format!(
            "cargo tree failed: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let forbidden = NOT_IN_THE_GATEWAY
        .into_iter()
        .filter(|name| names.contains(name));
    let message = |name| {
        format!(
            "the gateway depends on {name}, but must know neither the database nor the broker \
             (see `cargo tree -p gateway -e normal -i {name}`)"
        )
    };
    Ok(forbidden.map(message).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(edges: &[(&str, &str)]) -> Vec<String> {
        let mut dependencies = Dependencies::new();
        for (from, to) in edges {
            let used = dependencies.entry((*from).to_owned()).or_default();
            used.insert((*to).to_owned());
        }
        check_own(&dependencies)
    }

    #[test]
    fn a_service_that_depends_on_another_through_a_crate_is_an_error() {
        let through = ("services/a", "crates/shared");
        assert!(errors(&[through]).is_empty());
        let errors = errors(&[through, ("crates/shared", "services/b")]);
        assert_eq!(
            errors,
            ["services/a depends on services/b, but services may share only crates"]
        );
    }

    #[test]
    fn the_product_does_not_depend_on_development_tools() {
        assert!(errors(&[("crates/dev/chaos", "crates/dev/rig")]).is_empty());
        assert_eq!(errors(&[("gateway", "crates/dev/rig")]).len(), 1);
    }

    #[test]
    fn dependencies_of_tests_are_not_those_of_a_package() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = { workspace = true }\n\n\
                        [dev-dependencies]\nc.workspace = true\n";
        let names: Vec<_> = normal_dependencies(manifest).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
