//! Which packages may depend on which.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, ensure};
use cargo_metadata::{DependencyKind, Metadata, Package};

use crate::workspace::Workspace;

/// The database and broker crates, which the gateway must not depend on, even indirectly.
const NOT_IN_THE_GATEWAY: [&str; 7] = [
    "diesel",
    "diesel_migrations",
    "r2d2",
    "pq-sys",
    "lapin",
    "database",
    "messaging",
];

/// Each package and the packages of the workspace that it depends on.
type Dependencies<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns a message for each rule that is broken.
pub(super) fn check(workspace: &Workspace, metadata: &Metadata) -> anyhow::Result<Vec<String>> {
    let packages = metadata.packages.iter();
    let dependencies: Dependencies<'_> = packages
        .map(|package| (package.name.as_str(), workspace_dependencies(package)))
        .collect();
    let services = services(&workspace.root().join("services"), metadata);
    ensure!(
        services.len() > 1,
        "found {} packages in services/",
        services.len()
    );
    let mut errors = check_services(&services, &dependencies);
    if dependencies
        .get("database")
        .is_some_and(|used| used.contains("http-kit"))
    {
        errors.push("database depends on http-kit, but must not know HTTP".to_owned());
    }
    errors.extend(check_gateway(workspace)?);
    Ok(errors)
}

/// Dependencies with a path are the workspace's own.
fn workspace_dependencies(package: &Package) -> BTreeSet<&str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == DependencyKind::Normal && dependency.path.is_some())
        .map(|dependency| dependency.name.as_str())
        .collect()
}

fn services<'a>(folder: &Path, metadata: &'a Metadata) -> BTreeSet<&'a str> {
    metadata
        .packages
        .iter()
        .filter(|package| package.manifest_path.as_std_path().starts_with(folder))
        .map(|package| package.name.as_str())
        .collect()
}

/// No service may depend on another one, directly or through a crate.
fn check_services(services: &BTreeSet<&str>, dependencies: &Dependencies<'_>) -> Vec<String> {
    let mut errors = Vec::new();
    for service in services {
        let reached = reachable(service, dependencies);
        for other in services.intersection(&reached) {
            errors.push(format!(
                "{service} depends on {other}, but services may share only crates"
            ));
        }
    }
    errors
}

/// The direct and indirect dependencies of `package`.
fn reachable<'a>(package: &str, dependencies: &Dependencies<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![package];
    while let Some(package) = next.pop() {
        for used in dependencies.get(package).into_iter().flatten() {
            if reached.insert(*used) {
                next.push(used);
            }
        }
    }
    reached
}

/// Uses `cargo tree`, because it knows which features the gateway's own dependencies enable. The metadata of
/// the whole workspace does not.
fn check_gateway(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let output = workspace
        .cargo()
        .args(["tree", "--package", "gateway", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}"])
        .output()
        .context("running cargo tree")?;
    ensure!(
        output.status.success(),
        "cargo tree failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let tree = String::from_utf8(output.stdout).context("reading cargo tree")?;
    let names: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    ensure!(
        names.contains("gateway"),
        "cargo tree does not list the gateway"
    );
    Ok(NOT_IN_THE_GATEWAY
        .iter()
        .filter(|name| names.contains(*name))
        .map(|name| {
            format!(
                "the gateway depends on {name}, but must know neither the database nor the broker \
                 (see `cargo tree -p gateway -e normal -i {name}`)"
            )
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_depends_on_another_through_a_crate_is_an_error() {
        let services = BTreeSet::from(["a", "b"]);
        let mut dependencies = BTreeMap::from([
            ("a", BTreeSet::from(["shared"])),
            ("shared", BTreeSet::new()),
        ]);
        assert!(check_services(&services, &dependencies).is_empty());
        dependencies.insert("shared", BTreeSet::from(["b"]));
        let errors = check_services(&services, &dependencies);
        assert_eq!(errors.len(), 1);
        assert!(errors[0].starts_with("a depends on b"));
    }
}
