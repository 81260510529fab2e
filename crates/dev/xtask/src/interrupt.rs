//! Ctrl-C, `kill` and a closed terminal, noticed instead of obeyed at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Knows whether somebody wants this program to end.
#[derive(Clone)]
pub struct Interrupt {
    /// Zero, or the signal that came last.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// From now on these signals no longer end the program.
    pub fn watch() -> anyhow::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let value = usize::try_from(number)?;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), value)
                .context("watching for signals")?;
        }
        Ok(Self { signal })
    }

    /// Whether a signal arrived.
    pub fn came(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    /// An error when somebody wants this program to end, so that waiting loops can leave by `?`.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.came(), "interrupted");
        Ok(())
    }
}
