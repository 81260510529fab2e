//! The arguments of the command.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use rig::{duration::parse_duration, plan::parse_replicas};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Repeat the faults and choices of an earlier run. Without it a random seed is used and printed.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Duration of load and faults, such as `90s` or `5m`. Recovery takes additional time.
    #[arg(long, default_value = "2m", value_parser = parse_duration)]
    pub(crate) duration: Duration,
    /// Tasks per second. A run of hours uses a lower rate to limit its memory.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rate: u32,
    /// Run several replicas of a process. Can be repeated.
    #[arg(long, value_name = "PROCESS=N", default_value = "webhook-worker=3", value_parser = parse_replicas)]
    pub(crate) replicas: Vec<(String, usize)>,
    /// Run a cluster of this many RabbitMQ nodes. One of them at a time is stopped, killed or cut off.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_broker_nodes)]
    pub(crate) broker_nodes: usize,
    /// Run Postgres with a standby, for which each commit waits. The primary is killed and the standby promoted, and the
    /// standby is stopped.
    #[arg(long)]
    pub(crate) standby: bool,
    /// Build and run with optimisation.
    #[arg(long)]
    pub(crate) release: bool,
    /// Run the programs in this folder instead of building them.
    #[arg(long, value_name = "FOLDER", conflicts_with = "release")]
    pub(crate) programs: Option<PathBuf>,
}

/// A cluster of two nodes has no majority when one of them is gone.
fn parse_broker_nodes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(nodes @ (1 | 3 | 5)) => Ok(nodes),
        _ => Err("1, 3 or 5 nodes are possible".to_owned()),
    }
}
