//! The identity of one system, by which its processes are told from those of every other one, and the environment of its
//! processes. Variables of the caller take precedence over those of the commands.
//!
//! Another checkout may be at the same path in another container, so a path proves nothing. The identity is the folder of the
//! system on its device, and every process of the system has it in its environment.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use anyhow::Context as _;
use local_stack::{Identity, find_by_variable, private};

use crate::workspace::Workspace;

/// The variable's value for the processes of a system. The first call creates the folder.
pub fn mark(workspace: &Workspace) -> anyhow::Result<String> {
    let folder = &workspace.local;
    if !folder.is_dir() {
        private::create_reachable_folder(folder)?;
    }
    let place = fs::metadata(folder).context("finding the folder of the system")?;
    // A pid means nothing outside of its namespace, so neither does a process.
    let namespace = fs::read_link("/proc/self/ns/pid").context("finding the pid namespace")?;
    let (device, inode) = (place.dev(), place.ino());
    Ok(format!("{device}:{inode} {}", namespace.display()))
}

/// The running processes of a system, each with the name of its program.
pub fn processes(workspace: &Workspace) -> anyhow::Result<Vec<(String, Identity)>> {
    if !workspace.local.is_dir() {
        return Ok(Vec::new());
    }
    Ok(find_by_variable(MARKER, mark(workspace)?.as_ref()))
}

/// Marks all processes of a system with its identity (see `instance`), so that `down` finds the processes even when no
/// file has their pids.
pub const MARKER: &str = "COUNTERSIGN_INSTANCE";

/// Always set, because they differ between processes or are those of the system, and not inherited, so that a process has
/// only those that it needs.
const OF_ONE_PROCESS: [&str; 5] = [
    "LISTEN_ADDRESS",
    "METRICS_ADDRESS",
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "AMQP_URL",
];

pub type Variables = BTreeMap<&'static str, String>;

pub fn owned(settings: &[(&'static str, &str)]) -> Variables {
    let settings = settings.iter();
    settings
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

/// Adds those `variables` to the inherited environment of `command` that the caller has not set.
pub fn apply(command: &mut Command, variables: &Variables) {
    for name in OF_ONE_PROCESS {
        command.env_remove(name);
        command.env_remove(format!("{name}_FILE"));
    }
    let given = |name: &str| std::env::var_os(name).is_some();
    command.envs(not_given(variables, &given));
}

/// Returns the variables to set. A secret counts as given in either form, `X` or `X_FILE`.
fn not_given<'variables>(
    variables: &'variables Variables,
    given: &dyn Fn(&str) -> bool,
) -> impl Iterator<Item = (&'static str, &'variables OsStr)> {
    let is_set = |name: &str| {
        let plain = name.strip_suffix("_FILE").unwrap_or(name);
        let is_given = given(plain) || given(&format!("{plain}_FILE"));
        !is_given || name == MARKER || OF_ONE_PROCESS.contains(&name)
    };
    let variables = variables.iter().filter(move |(name, _)| is_set(name));
    variables.map(|(name, value)| (*name, OsStr::new(value)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use local_stack::{Detached, wait_until};

    use super::*;

    fn sleep(folder: &Path, name: &str, value: &str) -> Identity {
        let mut sleep = Detached::new(Path::new("sleep"), &folder.join("log"));
        sleep.command.arg("300").env(name, value);
        let identity = sleep.spawn().unwrap();
        let is_sleep = || {
            let name = fs::read_to_string(format!("/proc/{}/comm", identity.pid)).ok()?;
            (name == "sleep\n").then_some(())
        };
        wait_until(std::time::Duration::from_secs(5), is_sleep).unwrap();
        identity
    }

    #[test]
    fn a_process_of_another_instance_at_the_same_path_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        assert!(processes(&workspace).unwrap().is_empty());
        let own = mark(&workspace).unwrap();
        assert_eq!(mark(&workspace).unwrap(), own);
        let ours = sleep(folder.path(), MARKER, &own);
        let id = own.split(' ').next().unwrap();
        let others = [
            sleep(folder.path(), MARKER, "another one"),
            sleep(folder.path(), MARKER, &format!("{id} pid:[1]")),
        ];
        assert_eq!(processes(&workspace).unwrap(), [("sleep".to_owned(), ours)]);
        for process in others.iter().chain([&ours]) {
            assert!(process.is_alive());
            process.kill().unwrap();
        }
    }

    #[test]
    fn a_copy_of_the_folder_is_another_instance() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1"), folder.path().join("2"));
        fs::create_dir(&first).unwrap();
        let original = mark(&Workspace::at(&first)).unwrap();
        let mut copy = Command::new("cp");
        let copied = copy.arg("--archive").args([&first, &second]).status();
        assert!(copied.unwrap().success());
        assert_ne!(mark(&Workspace::at(&second)).unwrap(), original);
        assert_eq!(mark(&Workspace::at(&first)).unwrap(), original);
    }

    fn names(given: &[&str]) -> Vec<&'static str> {
        let variables = Variables::from([
            ("DATABASE_URL", "d".to_owned()),
            ("LOG_FORMAT", "text".to_owned()),
            ("TOKEN_SIGNING_KEY_FILE", "f".to_owned()),
        ]);
        not_given(&variables, &|name| given.contains(&name))
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn values_of_the_caller_take_precedence() {
        assert_eq!(
            names(&[]),
            ["DATABASE_URL", "LOG_FORMAT", "TOKEN_SIGNING_KEY_FILE"]
        );
        assert_eq!(
            names(&["LOG_FORMAT"]),
            ["DATABASE_URL", "TOKEN_SIGNING_KEY_FILE"]
        );
    }

    #[test]
    fn a_secret_may_be_given_in_either_form() {
        assert_eq!(
            names(&["TOKEN_SIGNING_KEY"]),
            ["DATABASE_URL", "LOG_FORMAT"]
        );
    }

    #[test]
    fn variables_that_differ_between_processes_are_always_set() {
        assert_eq!(
            names(&["DATABASE_URL"]),
            ["DATABASE_URL", "LOG_FORMAT", "TOKEN_SIGNING_KEY_FILE"]
        );
    }
}
