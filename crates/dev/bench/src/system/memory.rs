//! Memory of single processes, from `/proc`.

use std::collections::BTreeMap;

use procfs::process::Process;

/// A MiB in bytes.
pub(crate) const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// The memory of a process in MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Proportional set size: memory that processes share counts for each of them in part, so that sizes can be added.
    pub(crate) proportional: f64,
    /// Resident set size.
    pub(crate) resident: f64,
    /// The highest resident set size since the process started.
    pub(crate) highest: f64,
}

/// Reads the memory of processes, given by name and identifier. One that has ended has none.
pub(crate) fn of(processes: &BTreeMap<String, i32>) -> BTreeMap<String, Memory> {
    let read = |(name, pid): (&String, &i32)| (name.clone(), read(*pid).unwrap_or_default());
    processes.iter().map(read).collect()
}

/// The proportional set sizes together.
pub(crate) fn sum(memory: &BTreeMap<String, Memory>) -> f64 {
    memory.values().map(|memory| memory.proportional).sum()
}

fn read(pid: i32) -> Option<Memory> {
    let process = Process::new(pid).ok()?;
    let rollup = process.smaps_rollup().ok()?;
    let peak = process.status().ok()?.vmhwm.unwrap_or_default();
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

    use super::{of, sum};

    #[test]
    fn sizes_are_those_of_the_process() {
        let kept = vec![1_u8; 32 * 1024 * 1024];
        let own = std::process::id().try_into().unwrap();
        let memory = of(&BTreeMap::from([("this".to_owned(), own)]));
        assert!(sum(&memory) >= 32.0, "{memory:?}");
        assert!(memory["this"].resident >= memory["this"].proportional);
        drop(std::hint::black_box(kept));
    }

    #[test]
    fn a_peak_between_two_samples_is_seen() {
        let kept = vec![1_u8; 64 * 1024 * 1024];
        drop(std::hint::black_box(kept));
        let own = std::process::id().try_into().unwrap();
        let memory = of(&BTreeMap::from([("this".to_owned(), own)]));
        assert!(memory["this"].highest >= 64.0, "{memory:?}");
        assert!(
            memory["this"].resident < memory["this"].highest,
            "{memory:?}"
        );
    }
}
