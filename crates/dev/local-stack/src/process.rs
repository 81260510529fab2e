//! Starts processes that outlive this program, and stops exactly those.
//!
//! A process is identified by its pid and start time, so that a process which got the same pid later is never
//! signalled.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use procfs::process::{Process, Stat, all_processes};
use serde::{Deserialize, Serialize};

use crate::private::{self, failed};

/// The pause between two calls of a condition in [`wait_until`].
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Identifies one process, even if another one gets the same pid later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// Clock ticks between the boot of the machine and the start of the process.
    pub start_time: u64,
}

impl Identity {
    /// Returns the process that has this pid now. `None` when there is none or it has ended.
    pub fn of(pid: i32) -> Option<Self> {
        let process = Process::new(pid).ok()?;
        let stat = process.stat().ok()?;
        // The first thread of a process may have ended while others still hold its ports and files.
        let has_other_threads = || process.tasks().is_ok_and(|threads| threads.count() > 1);
        (stat.state != 'Z' || has_other_threads()).then_some(Self {
            pid,
            start_time: stat.starttime,
        })
    }

    pub fn is_alive(&self) -> bool {
        // Reaps the process if it is a child of this one. Otherwise this fails without harm.
        let _ = waitpid(Pid::from_raw(self.pid), Some(WaitPidFlag::WNOHANG));
        Self::of(self.pid) == Some(*self)
    }

    /// Sends a signal if this process is running.
    pub fn signal(&self, which: Signal) {
        if self.is_alive() {
            // The process may end between the check and the signal, which is fine.
            let _ = signal::kill(Pid::from_raw(self.pid), which);
        }
    }

    /// Sends `first` to the process, then SIGKILL if it is still running after `limit`. Kills its descendants,
    /// too.
    pub fn stop(&self, first: Signal, limit: Duration) -> Result<()> {
        let family = self.family();
        self.signal(first);
        if !holds_within(limit, || !self.is_alive()) {
            self.signal(Signal::SIGKILL);
        }
        kill_all(&family)
    }

    /// Kills the process and its descendants, as a power failure would.
    pub fn kill(&self) -> Result<()> {
        self.stop(Signal::SIGKILL, Duration::ZERO)
    }

    fn family(&self) -> Vec<Self> {
        if !self.is_alive() {
            return Vec::new();
        }
        let stats: Vec<_> = processes()
            .filter_map(|process| process.stat().ok())
            .collect();
        let family = family(self.pid, &stats).into_iter().map(|stat| Self {
            pid: stat.pid,
            start_time: stat.starttime,
        });
        family.collect()
    }
}

/// Ends a process and its descendants when it is dropped. One that survives is not looked for again.
#[derive(Debug)]
pub struct EndOnDrop(pub Identity);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}

/// A process and all its descendants.
pub fn family(root: i32, stats: &[Stat]) -> Vec<&Stat> {
    let mut family: Vec<&Stat> = stats.iter().filter(|stat| stat.pid == root).collect();
    let mut next = 0;
    while let Some(parent) = family.get(next).map(|stat| stat.pid) {
        family.extend(stats.iter().filter(|stat| stat.ppid == parent));
        next += 1;
    }
    family
}

/// Returns the running processes that have an environment variable with this value, each with the name of its
/// program.
pub fn find_by_variable(name: &str, value: &OsStr) -> Vec<(String, Identity)> {
    processes()
        .filter_map(|process| {
            let environment = process.environ().ok()?;
            if environment.get(OsStr::new(name))? != value {
                return None;
            }
            Some((process.stat().ok()?.comm, Identity::of(process.pid())?))
        })
        .collect()
}

fn processes() -> impl Iterator<Item = Process> {
    all_processes().into_iter().flatten().flatten()
}

fn kill_all(family: &[Identity]) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(10);
    let alive = || family.iter().find(|member| member.is_alive());
    let have_ended = |limit| holds_within(limit, || alive().is_none());
    // Most children end on their own when their parent is gone, and then log no error.
    if have_ended(Duration::from_millis(500)) {
        return Ok(());
    }
    for member in family {
        member.signal(Signal::SIGKILL);
    }
    let pid = || alive().map_or(0, |member| member.pid);
    ensure!(
        have_ended(LIMIT),
        "process {} is still running {LIMIT:?} after it was killed",
        pid()
    );
    Ok(())
}

/// A process in its own session, so that neither Ctrl-C nor a closed terminal reaches it.
#[derive(Debug)]
pub struct Detached {
    /// To set arguments, environment, folder and user.
    pub command: Command,
    program: PathBuf,
    log: PathBuf,
}

impl Detached {
    /// Prepares `program`, whose output is appended to `log`. Only the user can read the log and the files that the program
    /// creates. It runs through `sh` and `setsid`, which replace themselves by the program, so the pid is that of the
    /// program.
    pub fn new(program: &Path, log: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 077 && exec setsid \"$@\"", "sh"]);
        command.arg(program);
        Self {
            command,
            program: program.to_owned(),
            log: log.to_owned(),
        }
    }

    pub fn spawn(mut self) -> Result<Identity> {
        let out = private::append(&self.log)?;
        // Held for as long as the process has its output: see `PidFile`.
        let _ = out.try_lock_shared();
        let err = out.try_clone().with_context(failed("opening", &self.log))?;
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .with_context(failed("starting", &self.program))?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        // A process that has already ended has no identity. Start time 0 makes it count as ended.
        Ok(Identity::of(pid).unwrap_or(Identity { pid, start_time: 0 }))
    }
}

/// Runs a command without output. Returns whether it succeeded.
pub fn succeeds(command: &mut Command) -> bool {
    let output = command.output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs a command without input. Returns its output without the space around it, or an error with what it printed if it failed.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = run(command, b"")?;
    Ok(String::from_utf8_lossy(&output).trim().to_owned())
}

/// Runs a command with this input. Returns its output, or an error with what it printed if it failed.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Result<Vec<u8>> {
    let program = command.get_program().display().to_string();
    let failed = || format!("running {program}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(failed)?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        // Beside the output, for which a pipe may be too small. The program may end before it has read everything: its own
        // message says why.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output()
    });
    let output = output.with_context(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let [text, errors] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    let printed = if errors.is_empty() { text } else { errors };
    bail!("{program} failed ({}): {}", output.status, printed.trim())
}

/// Polls `condition` until it returns a value. Returns `None` after `limit`.
pub fn wait_until<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = condition() {
            return Some(value);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Polls `condition` until it holds. Returns whether it does within `limit`.
pub fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    wait_until(limit, || condition().then_some(())).is_some()
}

/// Returns the last `lines` lines of a file, at most 16 KiB of them. Empty when the file does not exist.
pub fn tail(path: &Path, lines: usize) -> String {
    const WINDOW: u64 = 16 * 1024;
    let mut bytes = Vec::new();
    // A file that is missing has no lines.
    let _ = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(WINDOW)))?;
        file.read_to_end(&mut bytes)
    });
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..)
        .unwrap_or_default()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn stop_ends_the_children_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut detached = Detached::new(Path::new("sh"), &folder.path().join("log"));
        detached
            .command
            .args(["-c", "trap '' TERM; sleep 300 & wait; sleep 300"]);
        let process = detached.spawn().unwrap();
        let family = wait_until(Duration::from_secs(5), || {
            let family = process.family();
            (family.len() > 1).then_some(family)
        })
        .unwrap();
        process
            .stop(Signal::SIGTERM, Duration::from_millis(50))
            .unwrap();
        assert!(!family.iter().any(Identity::is_alive));
    }

    #[test]
    fn another_process_with_the_same_pid_is_not_signalled() {
        let folder = tempfile::tempdir().unwrap();
        let mut detached = Detached::new(Path::new("sleep"), &folder.path().join("log"));
        detached.command.arg("300");
        let process = detached.spawn().unwrap();
        let other = Identity {
            start_time: process.start_time + 1,
            ..process
        };
        other.stop(Signal::SIGKILL, Duration::ZERO).unwrap();
        assert!(process.is_alive());
        process.kill().unwrap();
        assert!(!process.is_alive());
    }

    #[test]
    fn a_process_that_no_one_waited_for_has_ended() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let ended = || Identity::of(pid).is_none().then_some(());
        assert!(wait_until(Duration::from_secs(5), ended).is_some());
        child.wait().unwrap();
    }

    #[test]
    fn tail_returns_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 2), "b\nc");
        assert_eq!(tail(&folder.path().join("none"), 2), "");
    }
}
