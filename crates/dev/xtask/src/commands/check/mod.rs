//! `cargo xtask check`: checks that dependencies between packages, layers and files follow the architecture, and that
//! migrations run beside the version before.

mod cycles;
mod dependencies;
mod exceptions;
mod layers;
mod migrations;
mod modules;
mod source;

use std::process::ExitCode;

use anyhow::Context;
use cargo_metadata::{Metadata, MetadataCommand};

use self::{
    exceptions::{CIRCLE_EXCEPTIONS, Exception, LAYER_EXCEPTIONS},
    modules::{Graph, Package},
};
use crate::{outln, output::say, paint, workspace::Workspace};

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::find()?;
    let metadata = MetadataCommand::new()
        .current_dir(workspace.root())
        .no_deps()
        .exec()
        .context("reading the workspace")?;
    let mut errors = dependencies::check(&workspace, &metadata)?;
    let packages = read_packages(&workspace, &metadata)?;
    errors.extend(check_layers(&packages));
    errors.extend(check_cycles(&packages));
    errors.extend(migrations::check(&workspace)?);
    for error in &errors {
        outln!("{} {error}", paint::red("error:"));
    }
    if errors.is_empty() {
        say(
            "the dependencies between packages, layers and files follow the rules, and so do the migrations",
        );
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

/// Each package with its folder, such as `crates/values`.
fn read_packages(
    workspace: &Workspace,
    metadata: &Metadata,
) -> anyhow::Result<Vec<(String, Package)>> {
    let mut packages = Vec::new();
    for package in &metadata.packages {
        let folder = package
            .manifest_path
            .parent()
            .context("a manifest without a folder")?;
        let name = folder.as_std_path().strip_prefix(workspace.root())?;
        let read = Package::read(folder.join("src").as_std_path())?;
        packages.push((name.display().to_string(), read));
    }
    packages.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(packages)
}

fn check_layers(packages: &[(String, Package)]) -> Vec<String> {
    let mut found = Vec::new();
    for layer in layers::LAYERS {
        for (folder, package) in packages {
            for file in layer.violations(folder, package) {
                found.push((
                    format!("{file}: {}", layer.title),
                    format!("{file} names {}", layer.title),
                ));
            }
        }
    }
    without_exceptions(found, &LAYER_EXCEPTIONS)
}

fn check_cycles(packages: &[(String, Package)]) -> Vec<String> {
    let mut errors = Vec::new();
    for (folder, package) in packages {
        let mut graph = package.files();
        for Exception { what, reason } in &CIRCLE_EXCEPTIONS {
            if let Some(edge) = what.strip_prefix(&format!("{folder}: "))
                && !remove_cyclic_edge(&mut graph, edge)
            {
                errors.push(format!(
                    "{what} is no longer in a cycle: remove the exception ({reason})"
                ));
            }
        }
        let files = paths(&graph);
        // A cycle of files at the top of a package is a cycle of modules, too, but is reported once.
        let is_reported = |cycle: &String| files.iter().any(|it| it.replace(".rs", "") == *cycle);
        let modules = paths(&package.modules());
        let modules = modules.iter().filter(|cycle| !is_reported(cycle));
        for cycle in modules.chain(&files) {
            errors.push(format!("{folder}: import each other: {cycle}"));
        }
    }
    errors
}

/// The cycles of a graph, each as `a -> b -> a`.
fn paths(graph: &Graph) -> Vec<String> {
    cycles::find(graph)
        .iter()
        .map(|cycle| cycle.join(" -> "))
        .collect()
}

/// Removes `edge`, which is `from -> to`. Returns whether it was there and part of a cycle.
fn remove_cyclic_edge(graph: &mut Graph, edge: &str) -> bool {
    let Some((from, to)) = edge.split_once(" -> ") else {
        return false;
    };
    let cyclic = cycles::shortest_path(graph, to, from).is_some();
    let removed = graph
        .get_mut(from)
        .is_some_and(|imported| imported.remove(to));
    removed && cyclic
}

/// Returns the messages of `found` without an exception, and an error for each exception that is not needed.
fn without_exceptions(found: Vec<(String, String)>, exceptions: &[Exception]) -> Vec<String> {
    let stale = exceptions
        .iter()
        .filter(|exception| !found.iter().any(|(key, _)| key == exception.what))
        .map(|exception| {
            format!(
                "{} is no longer a violation: remove the exception ({})",
                exception.what, exception.reason
            )
        });
    let mut errors: Vec<String> = stale.collect();
    let known = |key: &str| exceptions.iter().any(|exception| exception.what == key);
    errors.extend(
        found
            .into_iter()
            .filter(|(key, _)| !known(key))
            .map(|(_, message)| message),
    );
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(exceptions: &[Exception]) -> Vec<String> {
        without_exceptions(
            vec![("a.rs".to_owned(), "a.rs names diesel".to_owned())],
            exceptions,
        )
    }

    #[test]
    fn an_exception_silences_its_violation() {
        assert_eq!(messages(&[]), ["a.rs names diesel"]);
        let exception = Exception {
            what: "a.rs",
            reason: "a column type",
        };
        assert!(messages(&[exception]).is_empty());
    }

    #[test]
    fn a_stale_exception_is_an_error() {
        let exceptions = [
            Exception {
                what: "a.rs",
                reason: "a column type",
            },
            Exception {
                what: "b.rs",
                reason: "a column type",
            },
        ];
        assert!(messages(&exceptions)[0].starts_with("b.rs is no longer a violation"));
    }

    #[test]
    fn an_edge_is_a_needed_exception_only_in_a_cycle() {
        let graph = |text: &str| -> Graph {
            let files = [
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", text),
                ("b.rs", "use crate::a;"),
            ];
            let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
            Package::parse(&files).unwrap().files()
        };
        let mut cyclic = graph("use crate::b;");
        assert!(remove_cyclic_edge(&mut cyclic, "a.rs -> b.rs"));
        assert!(cycles::find(&cyclic).is_empty());
        assert!(!remove_cyclic_edge(&mut graph(""), "b.rs -> a.rs"));
    }
}
