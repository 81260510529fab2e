//! Files that keep a server's process known from one program to the next.
//!
//! A file may be older than the last start of the machine, or shared with another container, where the same pid is
//! another process. So it also says where the pid is valid. And a server keeps a lock on its log for as long as it runs,
//! which is visible wherever the file is.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use crate::process::{Detached, Identity, tail, wait_until};
use crate::{Stop, private};

#[derive(Debug)]
pub(crate) struct PidFile {
    path: PathBuf,
    log: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    #[serde(flatten)]
    process: Identity,
    /// Absent in files of earlier versions.
    scope: Option<PidScope>,
}

/// Where a pid and a start time are valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PidScope {
    boot: String,
    /// The namespace of pids, which a container has of its own.
    namespace: String,
}

impl PidScope {
    fn current() -> Option<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(Self {
            boot: boot.trim().to_owned(),
            namespace: namespace.display().to_string(),
        })
    }
}

impl PidFile {
    pub(crate) fn new(path: PathBuf, log: PathBuf) -> Self {
        Self { path, log }
    }

    fn read(&self) -> Option<Content> {
        private::read_json(&self.path).ok().flatten()
    }

    /// Returns the process of the file if it is still running. It is one that this or another program of this folder
    /// started here since the last start of the machine.
    pub(crate) fn running(&self) -> Option<Identity> {
        let Content { process, scope } = self.read()?;
        let is_valid = scope.is_some() && scope == PidScope::current();
        (is_valid && process.is_alive()).then_some(process)
    }

    /// Fails if a process of the file runs that is not known to be this one's: it was started in another container, or by
    /// an earlier version. Neither it nor its files may be touched.
    pub(crate) fn ensure_own(&self) -> Result<()> {
        let Some(Content { process, scope }) = self.read() else {
            return Ok(());
        };
        let runs = match scope {
            Some(scope) if Some(&scope) == PidScope::current().as_ref() => false,
            Some(_) => self.log_is_locked(),
            None => process.is_alive(),
        };
        let (pid, file) = (process.pid, self.path.display());
        ensure!(
            !runs,
            "{file} names process {pid}, which another container or an earlier version of this project started, so it is \
             left alone. Stop it where it runs (`kill {pid}`), and then try again"
        );
        Ok(())
    }

    fn log_is_locked(&self) -> bool {
        // Closing the file releases the lock.
        let lock = File::open(&self.log).map(|file| file.try_lock());
        matches!(lock, Ok(Err(fs::TryLockError::WouldBlock)))
    }

    /// Waits until the server `accepts` connections. Fails when it ends or is not ready within `limit`.
    pub(crate) fn wait_ready(
        &self,
        server: &'static str,
        limit: Duration,
        accepts: impl Fn() -> bool,
    ) -> Result<()> {
        let ready = wait_until(limit, || match self.running() {
            None => Some(false),
            Some(_) => accepts().then_some(true),
        });
        let what = match ready {
            Some(true) => return Ok(()),
            Some(false) => "ended while it started".to_owned(),
            None => format!("did not become ready within {} s", limit.as_secs()),
        };
        let (log, end) = (self.log.display(), tail(&self.log, 30));
        bail!("{server} {what}; the end of {log}:\n{end}")
    }

    /// Starts the process that `prepare` returns, whose output goes to the log, unless it runs.
    pub(crate) fn start(&self, prepare: impl FnOnce(&Path) -> Result<Detached>) -> Result<()> {
        if self.running().is_some() {
            return Ok(());
        }
        self.ensure_own()?;
        self.write(prepare(&self.log)?.spawn()?)
    }

    fn write(&self, process: Identity) -> Result<()> {
        let content = Content {
            process,
            scope: PidScope::current(),
        };
        private::write_json(&self.path, &content)
    }

    /// Stops the process, if it runs: at once, or by a signal that gives it time.
    pub(crate) fn stop(&self, how: Stop, signal: Signal, limit: Duration) -> Result<()> {
        self.ensure_own()?;
        if let Some(process) = self.running() {
            match how {
                Stop::Graceful => process.stop(signal, limit)?,
                Stop::Kill => process.kill()?,
            }
        }
        // A missing file is fine, and one that cannot be removed names a process that has ended.
        let _ = fs::remove_file(&self.path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};
    use tempfile::TempDir;

    use super::*;
    use crate::process::Detached;

    fn start() -> (TempDir, PidFile, Identity) {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("pid"), folder.path().join("log"));
        let mut sleep = Detached::new(Path::new("sleep"), &log);
        sleep.command.arg("300");
        let process = sleep.spawn().unwrap();
        let file = PidFile::new(path, log);
        file.write(process).unwrap();
        (folder, file, process)
    }

    /// Changes the file as if another program had written it.
    fn change(file: &PidFile, pointer: &str, value: Value) {
        let mut content: Value = serde_json::from_slice(&fs::read(&file.path).unwrap()).unwrap();
        *content.pointer_mut(pointer).unwrap() = value;
        fs::write(&file.path, content.to_string()).unwrap();
    }

    #[test]
    fn a_process_that_was_started_here_is_known() {
        let (_folder, file, process) = start();
        assert_eq!(file.running(), Some(process));
        file.ensure_own().unwrap();
        process.kill().unwrap();
        assert_eq!(file.running(), None);
        file.ensure_own().unwrap();
    }

    #[test]
    fn another_process_with_the_pid_is_not_the_one_of_the_file() {
        let (_folder, file, process) = start();
        for (pointer, value) in [
            ("/start_time", json!(process.start_time + 1)),
            ("/scope/boot", json!("earlier")),
            ("/scope/namespace", json!("pid:[1]")),
            ("/scope", Value::Null),
        ] {
            file.write(process).unwrap();
            change(&file, pointer, value);
            assert_eq!(file.running(), None, "{pointer}");
        }
        assert!(process.is_alive());
        process.kill().unwrap();
    }

    #[test]
    fn a_process_of_another_container_or_of_an_earlier_version_is_left_alone_while_it_runs() {
        let (_folder, file, process) = start();
        for (pointer, value) in [
            ("/scope/namespace", json!("pid:[1]")),
            ("/scope", Value::Null),
        ] {
            file.write(process).unwrap();
            change(&file, pointer, value);
            let error = file.ensure_own().unwrap_err().to_string();
            assert!(error.contains(&format!("kill {}", process.pid)), "{error}");
        }
        change(&file, "/scope", json!({"boot": "b", "namespace": "n"}));
        assert!(file.ensure_own().is_err());
        process.kill().unwrap();
        file.ensure_own().unwrap();
        change(&file, "/scope", Value::Null);
        file.ensure_own().unwrap();
    }
}
