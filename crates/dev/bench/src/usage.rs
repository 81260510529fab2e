//! Processor time and memory of processes, from `/proc`.

use std::collections::BTreeMap;
use std::time::Instant;

use local_stack::family;
use procfs::process::{Process, Stat, all_processes};
use procfs::{CurrentSI as _, KernelStats};

/// The name of this process, which is the client and the receiver.
pub(crate) const CLIENT: &str = "bench (client and receiver)";

/// What a process and its descendants used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Used {
    /// Seconds of processor time, those of ended descendants included.
    pub(crate) cpu: f64,
    /// Resident memory in bytes. Memory that processes share counts once.
    pub(crate) memory: u64,
    /// When the first process was started, in ticks since the start of the machine.
    started: u64,
}

pub(crate) struct Usage {
    pub(crate) processes: BTreeMap<String, Used>,
    at: Instant,
    /// Seconds that processors of the machine had nothing to do, over all of them.
    idle: f64,
}

impl Usage {
    /// Reads the use of processes and their descendants, given by name and the first process.
    pub(crate) fn of(roots: &BTreeMap<String, i32>) -> Self {
        let all = all_processes().into_iter().flatten().flatten();
        let stats: Vec<Stat> = all.filter_map(|process| process.stat().ok()).collect();
        let of_root = |(name, pid): (&String, &i32)| (name.clone(), used(&family(*pid, &stats)));
        let mut processes: BTreeMap<String, Used> = roots.iter().map(of_root).collect();
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        if let Some(own) = stats.iter().find(|stat| stat.pid == own) {
            // Without its children, such as `psql`.
            let mut own = own.clone();
            (own.cutime, own.cstime) = (0, 0);
            processes.insert(CLIENT.to_owned(), used(&[&own]));
        }
        Self {
            processes,
            at: Instant::now(),
            idle: idle(),
        }
    }

    /// Shares of the machine's processor time since `earlier`, in percent: what the system, its servers and this process
    /// used, and what nothing used. The rest went to the kernel and to other programs.
    pub(crate) fn shares_since(&self, earlier: &Self) -> [f64; 2] {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let time = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        let used: f64 = self.cpu_since(earlier).values().sum();
        [used, self.idle - earlier.idle].map(|cpu| cpu / (time * cores as f64) * 100.0)
    }

    pub(crate) fn cpu_since(&self, earlier: &Self) -> BTreeMap<&str, f64> {
        let cpu = self.processes.iter().map(|(name, used)| {
            // A process that was restarted counts from its start.
            let before = earlier.processes.get(name);
            let before = before.filter(|before| before.started == used.started);
            // Descendants that end while they are read may count a little less than before.
            let since = (used.cpu - before.map_or(0.0, |before| before.cpu)).max(0.0);
            (name.as_str(), since)
        });
        cpu.collect()
    }

    pub(crate) fn cpu_of(&self, name: &str, earlier: &Self) -> f64 {
        let cpu = self.cpu_since(earlier);
        cpu.get(name).copied().unwrap_or_default()
    }
}

fn idle() -> f64 {
    let ticks = KernelStats::current().map_or(0, |stats| {
        stats.total.idle + stats.total.iowait.unwrap_or_default()
    });
    ticks as f64 / procfs::ticks_per_second() as f64
}

fn used(family: &[&Stat]) -> Used {
    let ticks = family.iter().map(|stat| {
        // The times of a descendant that has ended are those of its parent's children.
        i64::try_from(stat.utime + stat.stime).unwrap_or_default() + stat.cutime + stat.cstime
    });
    let ticks: i64 = ticks.sum();
    let pages = family.iter();
    let pages = pages.filter_map(|stat| Process::new(stat.pid).ok()?.statm().ok());
    let (mut private, mut shared) = (0, 0);
    for pages in pages {
        private += pages.resident.saturating_sub(pages.shared);
        shared = shared.max(pages.shared);
    }
    Used {
        cpu: ticks as f64 / procfs::ticks_per_second() as f64,
        memory: (private + shared) * procfs::page_size(),
        started: family.first().map_or(0, |first| first.starttime),
    }
}

pub(crate) const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The memory of a process in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Proportional set size: memory that processes share counts for each of them in part, so that sizes can be added.
    pub(crate) proportional: f64,
    pub(crate) resident: f64,
    /// The highest resident set size since the process started.
    pub(crate) highest: f64,
}

/// Reads the memory of processes, given by name and identifier. One that has ended has none.
pub(crate) fn memory_of(processes: &BTreeMap<String, i32>) -> BTreeMap<String, Memory> {
    let read = |(name, pid): (&String, &i32)| (name.clone(), read_memory(*pid).unwrap_or_default());
    processes.iter().map(read).collect()
}

pub(crate) fn memory_sum(memory: &BTreeMap<String, Memory>) -> f64 {
    memory.values().map(|memory| memory.proportional).sum()
}

fn read_memory(pid: i32) -> Option<Memory> {
    let process = Process::new(pid).ok()?;
    let rollup = process.smaps_rollup().ok()?;
    let peak = process.status().ok()?.vmhwm?;
    let mut maps = rollup.memory_map_rollup.into_iter();
    let sizes = maps.next()?.extension.map;
    let size = |name: &str| sizes.get(name).copied().unwrap_or_default() as f64 / MEBIBYTE;
    Some(Memory {
        proportional: size("Pss"),
        resident: size("Rss"),
        highest: peak as f64 / 1024.0,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::process::Command;
    use std::time::Instant;

    use super::{Usage, memory_of, memory_sum};

    fn own() -> BTreeMap<String, i32> {
        BTreeMap::from([("this".to_owned(), std::process::id().try_into().unwrap())])
    }

    #[test]
    fn the_time_of_a_child_that_ended_counts() {
        let before = Usage::of(&own());
        let start = Instant::now();
        let loops = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh").args(["-c", loops]).spawn().unwrap();
        child.wait().unwrap();
        let used = Usage::of(&own()).cpu_of("this", &before);
        assert!(used >= 0.02, "{used} s of {:?}", start.elapsed());
    }

    #[test]
    fn memory_is_that_of_the_process() {
        let kept = vec![1_u8; 32 * 1024 * 1024];
        let usage = Usage::of(&own());
        assert!(usage.processes["this"].memory > 32 * 1024 * 1024);
        drop(std::hint::black_box(kept));
    }

    #[test]
    fn sizes_are_those_of_the_process() {
        let kept = vec![1_u8; 32 * 1024 * 1024];
        let own = std::process::id().try_into().unwrap();
        let memory = memory_of(&BTreeMap::from([("this".to_owned(), own)]));
        assert!(memory_sum(&memory) >= 32.0, "{memory:?}");
        assert!(memory["this"].resident >= memory["this"].proportional);
        drop(std::hint::black_box(kept));
    }

    #[test]
    fn a_peak_between_two_samples_is_seen() {
        let kept = vec![1_u8; 64 * 1024 * 1024];
        drop(std::hint::black_box(kept));
        let own = std::process::id().try_into().unwrap();
        let memory = memory_of(&BTreeMap::from([("this".to_owned(), own)]));
        assert!(memory["this"].highest >= 64.0, "{memory:?}");
        assert!(
            memory["this"].resident < memory["this"].highest,
            "{memory:?}"
        );
    }
}
