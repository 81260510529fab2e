//! Builds a program of the workspace.

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::report;

/// Builds `program`. Returns its path.
///
/// Cargo chooses the features of dependencies for all packages that are selected together. So the whole workspace is
/// selected in each build, and no dependency is compiled twice.
pub(crate) fn program(program: &str, optimised: bool) -> Result<PathBuf, String> {
    let mut command = cargo();
    command.args(["build", "--workspace", "--bin", program]);
    command.args(["--message-format", "json-render-diagnostics"]);
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
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("running cargo: {error}"))?;
    let messages = child.stdout.take().map(BufReader::new);
    let lines = messages.into_iter().flat_map(BufRead::lines);
    let built = lines
        .map_while(Result::ok)
        .filter_map(|line| executable(&line, program))
        .last();
    let status = child
        .wait()
        .map_err(|error| format!("waiting for cargo: {error}"))?;
    match built {
        Some(path) if status.success() => Ok(path),
        _ => Err(format!("{program} could not be built")),
    }
}

/// The path of `program` in one of cargo's messages. Only a path with quotation marks or backslashes would need a parser.
fn executable(message: &str, program: &str) -> Option<PathBuf> {
    let (target, after) = message.split_once("\"executable\":\"")?;
    let is_program = target.contains(&format!("\"name\":\"{program}\""));
    let (path, _) = after.split_once('"')?;
    is_program.then(|| PathBuf::from(path))
}

/// Cargo, without the variables that it sets for the program that it runs: another cargo must not see them.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    for (name, _) in env::vars_os() {
        let is_ours =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_ours) {
            command.env_remove(name);
        }
    }
    command
}

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(3).unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_in_the_messages_of_cargo() {
        let message = r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"devtools"},"executable":"/x/devtools","fresh":true}"#;
        assert_eq!(executable(message, "devtools"), Some("/x/devtools".into()));
        assert_eq!(executable(message, "drills"), None);
        let library = r#"{"target":{"kind":["lib"],"name":"devtools"},"executable":null}"#;
        assert_eq!(executable(library, "devtools"), None);
    }

    #[test]
    fn the_root_has_the_lock_file() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
