//! The identity of one system, by which its processes are told from those of every other one.
//!
//! Another checkout may be at the same path in another container, so a path proves nothing. The identity is random. It is
//! written to the folder of the system, and every process of the system has it in its environment.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::Context as _;
use local_stack::{private, process::Identity, process::find_by_variable, random};
use serde::{Deserialize, Serialize};

use crate::{environment::MARKER, workspace::Workspace};

/// The variable of earlier versions. Its value is the folder.
const EARLIER_MARKER: &str = "COUNTERSIGN_STACK";

/// What the file holds.
#[derive(Serialize, Deserialize)]
struct Instance {
    id: String,
    /// The folder that the file was written to. A copy of the folder is another instance.
    device: u64,
    inode: u64,
}

impl Instance {
    fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("instance.json")).ok()?;
        let instance: Self = serde_json::from_str(&text).ok()?;
        let place = fs::metadata(folder).ok()?;
        let is_here = (instance.device, instance.inode) == (place.dev(), place.ino());
        is_here.then_some(instance)
    }

    fn create(folder: &Path) -> anyhow::Result<Self> {
        private::create_reachable_folder(folder)?;
        let place = fs::metadata(folder).context("finding the folder of the system")?;
        let instance = Self {
            id: random::password()?,
            device: place.dev(),
            inode: place.ino(),
        };
        let text = serde_json::to_string(&instance)?;
        random::write_private(&folder.join("instance.json"), text.as_bytes())?;
        Ok(instance)
    }

    /// The value of the variable. A pid means nothing outside of its namespace, so neither does a process.
    fn mark(&self) -> anyhow::Result<String> {
        let namespace = fs::read_link("/proc/self/ns/pid").context("finding the pid namespace")?;
        Ok(format!("{} {}", self.id, namespace.display()))
    }
}

/// The variable's value for the processes of a system. The first call creates the identity.
pub fn mark(workspace: &Workspace) -> anyhow::Result<String> {
    let folder = workspace.local();
    match Instance::read(&folder) {
        Some(instance) => instance.mark(),
        None => Instance::create(&folder)?.mark(),
    }
}

/// The running processes of a system, each with the name of its program.
pub fn processes(workspace: &Workspace) -> anyhow::Result<Vec<(String, Identity)>> {
    let Some(instance) = Instance::read(&workspace.local()) else {
        return Ok(Vec::new());
    };
    Ok(find_by_variable(MARKER, instance.mark()?.as_ref()))
}

/// What to say about processes that may be those of an earlier version of this system or of another checkout at the same
/// path. Nothing proves which, so they are not stopped.
pub fn unproven(workspace: &Workspace) -> Option<String> {
    let found = find_by_variable(EARLIER_MARKER, workspace.local().as_os_str());
    let pids: Vec<String> = found.iter().map(|(_, one)| one.pid.to_string()).collect();
    (!pids.is_empty()).then(|| {
        format!(
            "{} processes of an earlier version run for a checkout at this path, which may be another one, so they are left \
             alone. If they are yours, stop them: kill {}",
            pids.len(),
            pids.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use local_stack::process::{Detached, wait_until};

    use super::*;

    fn sleep(folder: &Path, name: &str, value: &str) -> Identity {
        let mut sleep = Detached::new(Path::new("sleep"), &folder.join("log"));
        sleep.command().arg("300").env(name, value);
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
            sleep(
                folder.path(),
                EARLIER_MARKER,
                workspace.local().to_str().unwrap(),
            ),
        ];
        assert_eq!(processes(&workspace).unwrap(), [("sleep".to_owned(), ours)]);
        let advice = unproven(&workspace).unwrap();
        assert!(
            advice.ends_with(&format!("kill {}", others[2].pid)),
            "{advice}"
        );
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
}
