//! The memory of the system's processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procfs::process::{ProcState, Process};
use rig::outln;

const INTERVAL: Duration = Duration::from_secs(1);

/// The resident memory of one process, in bytes. The highest is that since the process started.
#[derive(Debug, Clone, Copy, Default)]
struct Resident {
    now: u64,
    highest: u64,
    ended: bool,
}

/// Watches the memory of processes, once a second and by the kernel's maximum.
#[derive(Debug)]
pub(crate) struct Memory(Arc<Mutex<BTreeMap<String, Resident>>>);

impl Memory {
    /// Watches processes, given by name and id, for as long as the runtime exists.
    pub(crate) fn start(processes: impl Iterator<Item = (String, i32)>) -> Self {
        let processes: Vec<_> = processes.collect();
        let watched = Arc::new(Mutex::new(BTreeMap::<String, Resident>::new()));
        let shared = Arc::clone(&watched);
        tokio::spawn(async move {
            let mut tick = tokio::time::interval(INTERVAL);
            loop {
                tick.tick().await;
                let mut watched = shared.lock().unwrap_or_else(PoisonError::into_inner);
                for (name, pid) in &processes {
                    observe(watched.entry(name.clone()).or_default(), *pid);
                }
            }
        });
        Self(watched)
    }

    /// Prints the current and the highest memory of each process.
    pub(crate) fn print(&self, phase: &str) {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, resident) in watched.iter() {
            outln!(
                "  {phase}: {name:<22} {:>4} MiB, highest {:>4} MiB",
                mebibytes(resident.now),
                mebibytes(resident.highest)
            );
        }
    }

    /// The processes that ended or that exceeded `limit` MiB.
    pub(crate) fn failures(&self, limit: u64) -> Vec<String> {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = watched.iter().filter_map(|(name, resident)| {
            if resident.ended {
                return Some(format!("{name} ended"));
            }
            let highest = mebibytes(resident.highest);
            (highest > limit).then(|| format!("{name} grew to {highest} MiB"))
        });
        failed.collect()
    }
}

fn observe(resident: &mut Resident, pid: i32) {
    let Some(process) = running(pid) else {
        resident.ended = true;
        return;
    };
    if let Ok(memory) = process.statm() {
        resident.now = memory.resident.saturating_mul(procfs::page_size());
    }
    // The kernel's own maximum since the process started, which includes peaks between two samples.
    let status = process.status().ok();
    let peak = status.and_then(|status| status.vmhwm).unwrap_or_default();
    let peak = peak.saturating_mul(1024);
    resident.highest = resident.highest.max(resident.now).max(peak);
}

/// The process, if it has not ended. Until its parent waits for it, an ended process exists as a zombie.
fn running(pid: i32) -> Option<Process> {
    let process = Process::new(pid).ok()?;
    let state = process.stat().ok()?.state().ok()?;
    let ended = matches!(state, ProcState::Zombie | ProcState::Dead);
    (!ended).then_some(process)
}

fn mebibytes(bytes: u64) -> u64 {
    bytes / (1024 * 1024)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Resident, observe};

    #[test]
    fn a_peak_between_two_samples_is_seen() {
        let memory = vec![1_u8; 64 * 1024 * 1024];
        drop(std::hint::black_box(memory));
        let mut resident = Resident::default();
        observe(&mut resident, std::process::id().try_into().unwrap());
        assert!(resident.highest >= 64 * 1024 * 1024, "{resident:?}");
        assert!(resident.now < resident.highest, "{resident:?}");
        assert!(!resident.ended);
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = Command::new("true").spawn().unwrap();
        let mut resident = Resident::default();
        while !resident.ended {
            observe(&mut resident, child.id().try_into().unwrap());
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
