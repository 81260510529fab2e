//! Starting processes that outlive us, and ending exactly those.
//!
//! A process is known by its pid and the time at which it started, so that a pid which the system has
//! given to somebody else in the meantime is never signalled.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::{
        signal::{self, Signal},
        wait::{WaitPidFlag, waitpid},
    },
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

const POLL: Duration = Duration::from_millis(25);

/// One process, told apart from any later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The process id.
    pub pid: i32,
    /// Clock ticks between the boot of the machine and the start of the process.
    pub start_time: u64,
}

impl Identity {
    /// Who has this pid now; `None` when nobody has, or only a process that has ended.
    #[must_use]
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::read(pid)?;
        (stat.state != 'Z' || has_other_threads(pid)).then_some(Self {
            pid,
            start_time: stat.start_time,
        })
    }

    /// Whether this very process runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        // Reaps it when it was our child; otherwise this fails without harm.
        let _ = waitpid(Pid::from_raw(self.pid), Some(WaitPidFlag::WNOHANG));
        Self::of(self.pid) == Some(*self)
    }

    /// Sends a signal, if this very process runs.
    pub fn signal(&self, which: Signal) {
        if self.is_alive() {
            // It may end between the check and the signal, which is what was wanted anyway.
            let _ = signal::kill(Pid::from_raw(self.pid), which);
        }
    }

    /// Waits until the process has ended; says whether it has.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        wait_until(limit, || (!self.is_alive()).then_some(())).is_some()
    }

    /// Ends the process and what it started: `polite` first, and SIGKILL for what is left after `limit`.
    ///
    /// # Errors
    /// When even a killed process stays.
    pub fn stop(&self, polite: Signal, limit: Duration) -> Result<()> {
        let family = self.family();
        self.signal(polite);
        if !self.wait(limit) {
            self.signal(Signal::SIGKILL);
        }
        kill_all(&family)
    }

    /// Kills the process and what it started, as a power failure would.
    ///
    /// # Errors
    /// When even a killed process stays.
    pub fn kill(&self) -> Result<()> {
        let family = self.family();
        self.signal(Signal::SIGKILL);
        kill_all(&family)
    }

    /// The process and all its descendants.
    fn family(&self) -> Vec<Self> {
        if !self.is_alive() {
            return Vec::new();
        }
        let everybody: Vec<(i32, Self)> = running_pids()
            .filter_map(|pid| {
                let stat = Stat::read(pid)?;
                Some((
                    stat.parent,
                    Self {
                        pid,
                        start_time: stat.start_time,
                    },
                ))
            })
            .collect();
        let mut family = vec![*self];
        let mut next = 0;
        while let Some(parent) = family.get(next).map(|member| member.pid) {
            family.extend(
                everybody
                    .iter()
                    .filter(|(of, _)| *of == parent)
                    .map(|(_, child)| *child),
            );
            next += 1;
        }
        family
    }
}

fn kill_all(family: &[Identity]) -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    // Children end by themselves once their parent is gone; a moment for it keeps their logs quiet.
    let settled = |limit| {
        wait_until(limit, || {
            (!family.iter().any(Identity::is_alive)).then_some(())
        })
    };
    if settled(Duration::from_millis(500)).is_some() {
        return Ok(());
    }
    for member in family {
        member.signal(Signal::SIGKILL);
    }
    if settled(PATIENCE).is_some() {
        return Ok(());
    }
    let pid = family
        .iter()
        .find(|member| member.is_alive())
        .map_or(0, |member| member.pid);
    Err(Error::StillRunning {
        pid,
        after: PATIENCE,
    })
}

/// The first thread of a process that ends may be gone while others still hold its ports and files.
fn has_other_threads(pid: i32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

struct Stat {
    state: char,
    parent: i32,
    start_time: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field is the program's name in brackets and may itself hold blanks and brackets.
    fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start_time = fields.nth(17)?.parse().ok()?;
        Some(Self {
            state,
            parent,
            start_time,
        })
    }
}

fn running_pids() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// A process that lives in a session of its own, so that neither Ctrl-C nor a closed terminal reaches it.
#[derive(Debug)]
pub struct Detached {
    command: Command,
    log: PathBuf,
}

impl Detached {
    /// Prepares `program`, whose output is appended to `log`. It runs through `setsid`, which becomes
    /// the program without a new process, so the pid is the program's own.
    #[must_use]
    pub fn new(program: &Path, log: &Path) -> Self {
        let mut command = Command::new("setsid");
        command.arg(program);
        Self {
            command,
            log: log.to_owned(),
        }
    }

    /// For arguments, environment, folder and user.
    pub fn command(&mut self) -> &mut Command {
        &mut self.command
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the log cannot be written or the program cannot be started.
    pub fn spawn(mut self) -> Result<Identity> {
        let out = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(Error::file("opening", &self.log))?;
        let err = out.try_clone().map_err(Error::file("opening", &self.log))?;
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(Error::system(format!(
                "starting {:?}",
                self.command.get_program()
            )))?;
        let pid = i32::try_from(child.id()).unwrap_or_default();
        // One that ended at once has no identity any more; with start time 0 it counts as ended.
        Ok(Identity::of(pid).unwrap_or(Identity { pid, start_time: 0 }))
    }
}

/// Asks `condition` again and again until it answers, or `None` after `limit`.
pub fn wait_until<T>(limit: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(answer) = condition() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        thread::sleep(POLL);
    }
}

/// The last `lines` lines of a file, as far as its last 16 KiB go; empty when there is no such file.
#[must_use]
pub fn tail(path: &Path, lines: usize) -> String {
    const WINDOW: u64 = 16 * 1024;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(WINDOW)))?;
        file.read_to_end(&mut bytes)
    });
    if read.is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    all.get(all.len().saturating_sub(lines)..)
        .unwrap_or_default()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_a_nasty_program_name_is_read() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(
            (stat.state, stat.parent, stat.start_time),
            ('S', 7, 987_654)
        );
    }

    #[test]
    fn a_stopped_process_takes_its_children_along() {
        let folder = tempfile::tempdir().unwrap();
        let mut detached = Detached::new(Path::new("sh"), &folder.path().join("log"));
        detached
            .command()
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
    fn somebody_elses_pid_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut detached = Detached::new(Path::new("sleep"), &folder.path().join("log"));
        detached.command().arg("300");
        let process = detached.spawn().unwrap();
        let stranger = Identity {
            start_time: process.start_time + 1,
            ..process
        };
        stranger.stop(Signal::SIGKILL, Duration::ZERO).unwrap();
        assert!(process.is_alive());
        process.kill().unwrap();
        assert!(!process.is_alive());
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, "a\nb\nc\n").unwrap();
        assert_eq!(tail(&path, 2), "b\nc");
        assert_eq!(tail(&folder.path().join("none"), 2), "");
    }
}
