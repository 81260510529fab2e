//! The arguments of the command.

use clap::{Args, ValueEnum};

/// A part of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Upgrade from the earlier version, go back, and upgrade again.
    Upgrade,
    /// Restart every process.
    Restart,
    /// Rotate both signing keys.
    RotateKeys,
}

/// What to test.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The version to upgrade from. By default the last tag, or the commit of the last migration that needs a stop.
    #[arg(long, value_name = "REVISION")]
    pub(crate) from: Option<String>,
    /// Run only this part. Can be repeated.
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<Part>,
    /// Tasks per second. There are twice as many other requests.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rate: u32,
}

impl Arguments {
    pub(super) fn includes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}
