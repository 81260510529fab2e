//! Which packages may depend on which.

use std::collections::BTreeSet;

use crate::build::{cargo, root};

/// What the gateway must not depend on, even indirectly.
const NOT_IN_THE_GATEWAY: [&str; 7] = [
    "diesel",
    "diesel_migrations",
    "r2d2",
    "pq-sys",
    "lapin",
    "crates/database",
    "crates/messaging",
];

/// Packages: those of the workspace by their folders, such as `crates/values`, and others by their names.
type Packages = BTreeSet<String>;

pub(super) fn all() -> Result<Packages, String> {
    let packages = tree(&["--workspace", "--depth", "0"])?;
    let has_manifest = |package: &&String| root().join(package).join("Cargo.toml").is_file();
    match packages.iter().find(|package| !has_manifest(package)) {
        Some(package) => Err(format!("cargo tree names no folder of {package}")),
        None => Ok(packages),
    }
}

/// Returns a message for each dependency of a program or a service that breaks a rule.
pub(super) fn check(folders: &Packages) -> Result<Vec<String>, String> {
    let mut errors = Vec::new();
    for package in folders {
        if !package.starts_with("crates/") || package == "crates/operator-cli" {
            errors.extend(forbidden(package, &tree(&["--package", name(package)])?));
        }
    }
    Ok(errors)
}

fn name(package: &str) -> &str {
    package.rsplit('/').next().unwrap_or_default()
}

/// Returns a message for each package in `used`, on which `package` must not depend.
fn forbidden(package: &str, used: &Packages) -> Vec<String> {
    let reason = |used: &str| {
        if package.starts_with("services/") && used.starts_with("services/") && used != package {
            Some("services may share only crates")
        } else if used.starts_with("crates/dev/") {
            Some("the product does not contain development tools")
        } else if package == "gateway" && NOT_IN_THE_GATEWAY.contains(&used) {
            Some("must know neither the database nor the broker")
        } else {
            None
        }
    };
    let broken = used.iter().filter_map(|used| Some((used, reason(used)?)));
    let message = |(used, reason): (&String, &str)| {
        let path = format!(
            "cargo tree -p {} -e normal -i {}",
            name(package),
            name(used)
        );
        format!("{package} depends on {used}, but {reason} (see `{path}`)")
    };
    broken.map(message).collect()
}

/// The packages that `cargo tree` prints, tests left out.
fn tree(arguments: &[&str]) -> Result<Packages, String> {
    let mut tree = cargo("tree");
    tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let output = tree.args(arguments).output();
    let output = output.map_err(|error| format!("running cargo tree: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo tree failed: {message}"));
    }
    let within = format!("({}/", root().display());
    Ok(parse(&String::from_utf8_lossy(&output.stdout), &within))
}

/// Each line has a name, a version, and for a package of the workspace its folder in brackets.
fn parse(tree: &str, within: &str) -> Packages {
    let lines = tree.lines().filter(|line| !line.is_empty());
    let packages = lines.filter_map(|line| match line.split_once(within) {
        Some((_, folder)) => folder.split(')').next(),
        None => line.split(' ').next(),
    });
    packages.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(package: &str, used: &[&str]) -> Vec<String> {
        let used = used.iter().map(|used| (*used).to_owned());
        forbidden(package, &used.collect())
    }

    #[test]
    fn a_service_that_depends_on_another_is_an_error() {
        assert!(errors("services/a", &["services/a", "crates/shared"]).is_empty());
        assert!(errors("all-services", &["services/a", "services/b"]).is_empty());
        let errors = errors("services/a", &["services/a", "services/b"]);
        assert_eq!(errors.len(), 1);
        let expected = "services/a depends on services/b, but services may share only crates";
        assert!(errors[0].starts_with(expected), "{errors:?}");
    }

    #[test]
    fn the_product_does_not_depend_on_development_tools() {
        assert_eq!(errors("gateway", &["crates/dev/rig"]).len(), 1);
    }

    #[test]
    fn the_gateway_knows_neither_the_database_nor_the_broker() {
        assert_eq!(errors("gateway", &NOT_IN_THE_GATEWAY).len(), 7);
        assert!(errors("services/a", &NOT_IN_THE_GATEWAY).is_empty());
    }

    #[test]
    fn packages_of_the_workspace_are_known_by_their_folders() {
        let tree = "gateway v0.3.0 (/folder/gateway)\nserde_derive v1.0.0 (proc-macro)\n\n\
                    values v0.3.0 (/folder/crates/values) (*)\n";
        let expected = ["crates/values", "gateway", "serde_derive"];
        assert!(parse(tree, "(/folder/").iter().eq(&expected));
    }

    #[test]
    fn cargo_lists_what_a_package_depends_on_without_tests() {
        let used = tree(&["--package", "gateway"]).unwrap();
        assert!(used.contains("crates/values") && !used.contains("crates/dev/testkit"));
    }
}
