//! Cargo, which builds and runs the programs of the workspace.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::report;

/// Cargo with the arguments to build `program` and to run it.
///
/// Cargo chooses the features of dependencies for all packages that are selected together. No package is named, so the whole
/// workspace is selected in each build, and no dependency is compiled twice.
pub(crate) fn run(program: &str) -> Command {
    // It measures.
    let optimised = program == "bench";
    let mut command = cargo("run");
    command.args(["--bin", program]);
    let profile = if optimised { "release" } else { "debug" };
    if optimised {
        command.arg("--release");
    }
    if root().join("target").join(profile).join(program).exists() {
        command.arg("--quiet");
    } else {
        report(&format!(
            "==> building {program}, and then what it runs; on two cores the first build takes a few minutes"
        ));
    }
    command.arg("--");
    command
}

pub(crate) fn cargo(subcommand: &str) -> Command {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = command(Path::new(&cargo));
    command.args([subcommand, "--manifest-path"]);
    command.arg(root().join("Cargo.toml"));
    command
}

/// A command without the variables that cargo sets for the program that it runs: another cargo must not see them.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let is_ours =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_ours) {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(3).unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_the_lock_file() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
