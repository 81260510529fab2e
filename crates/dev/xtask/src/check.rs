//! `cargo xtask check`: packages depend on each other only as the architecture says.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

use anyhow::{Context, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::{launch::say, paint, workspace::Workspace};

/// What the gateway must not know, however indirectly: database and broker.
const NOT_IN_THE_GATEWAY: [&str; 7] = [
    "diesel",
    "diesel_migrations",
    "r2d2",
    "pq-sys",
    "lapin",
    "database",
    "messaging",
];

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let mut faults = services_among_themselves(&workspace)?;
    faults.extend(gateway(&workspace)?);
    for fault in &faults {
        outln!("{} {fault}", paint::red("error:"));
    }
    if faults.is_empty() {
        say("dependencies are as they should be");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// No service may use another one, directly or through a crate.
fn services_among_themselves(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .no_deps()
        .exec()
        .context("reading the workspace")?;
    let services_folder = workspace.root().join("services");
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut services = BTreeSet::new();
    for package in &metadata.packages {
        if package
            .manifest_path
            .as_std_path()
            .starts_with(&services_folder)
        {
            services.insert(package.name.as_str());
        }
        // Only packages of the workspace can lead to a service, and those have a path.
        let normal = package
            .dependencies
            .iter()
            .filter(|one| one.kind == DependencyKind::Normal && one.path.is_some());
        uses.insert(
            package.name.as_str(),
            normal.map(|one| one.name.as_str()).collect(),
        );
    }
    ensure!(
        services.len() > 1,
        "found {} packages in services/",
        services.len()
    );
    Ok(faults_of(&services, &uses))
}

fn faults_of(services: &BTreeSet<&str>, uses: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut faults = Vec::new();
    for service in services {
        let mut reached = BTreeSet::from([*service]);
        let mut next = vec![*service];
        while let Some(package) = next.pop() {
            for used in uses.get(package).into_iter().flatten() {
                if reached.insert(used) {
                    next.push(used);
                }
            }
        }
        for other in services
            .iter()
            .filter(|other| *other != service && reached.contains(*other))
        {
            faults.push(format!(
                "{service} depends on {other}; services share nothing but crates"
            ));
        }
    }
    faults
}

/// `cargo tree` knows which features the gateway's own dependencies switch on; the metadata of the
/// whole workspace do not.
fn gateway(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let output = workspace
        .cargo()
        .args([
            "tree",
            "--package",
            "gateway",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
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
        "cargo tree does not mention the gateway"
    );
    Ok(NOT_IN_THE_GATEWAY
        .iter()
        .filter(|name| names.contains(*name))
        .map(|name| {
            format!("the gateway depends on {name} (see `cargo tree -p gateway -e normal -i {name}`); it knows neither database nor broker")
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_reaches_another_through_a_crate_is_found() {
        let services = BTreeSet::from(["a", "b"]);
        let mut uses = BTreeMap::from([
            ("a", BTreeSet::from(["shared"])),
            ("shared", BTreeSet::new()),
        ]);
        assert!(faults_of(&services, &uses).is_empty());
        uses.insert("shared", BTreeSet::from(["b"]));
        let faults = faults_of(&services, &uses);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("a depends on b"));
    }
}
