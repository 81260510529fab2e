//! The memory of the system's processes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use procfs::process::Process;
use xtask::outln;

const INTERVAL: Duration = Duration::from_secs(1);

/// The resident memory of one process, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Resident {
    now: u64,
    highest: u64,
    ended: bool,
}

/// Watches the memory of processes once a second.
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
    let memory = Process::new(pid).and_then(|process| process.statm());
    match memory {
        Ok(memory) => {
            resident.now = memory.resident.saturating_mul(procfs::page_size());
            resident.highest = resident.highest.max(resident.now);
        }
        Err(_) => resident.ended = true,
    }
}

fn mebibytes(bytes: u64) -> u64 {
    bytes / (1024 * 1024)
}
