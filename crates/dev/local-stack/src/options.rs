//! How the servers are started and stopped.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::packages::Need;

/// Whether data survives a failure of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Every commit is written to disk.
    Durable,
    /// The data is temporary, so nothing waits for the disk.
    Discardable,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It is asked to stop and given time.
    Graceful,
    /// SIGKILL.
    Kill,
}

/// Which servers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Postgres and RabbitMQ.
    Both,
    /// Only the database; the broker runs elsewhere.
    Postgres,
    /// Only the broker; the database runs elsewhere.
    RabbitMq,
}

impl Parts {
    /// Returns the packages that provide the servers.
    pub fn needs(self) -> &'static [Need] {
        match self {
            Self::Both => &[Need::Postgres, Need::RabbitMq, Need::Psql],
            Self::Postgres => &[Need::Postgres, Need::Psql],
            Self::RabbitMq => &[Need::RabbitMq],
        }
    }
}

/// Which servers to start, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// Holds all files of the servers.
    pub folder: PathBuf,
    /// Whether their data survives a failure of the machine.
    pub durability: Durability,
    /// Which of them to start.
    pub parts: Parts,
    /// How many nodes the broker has. Several are a cluster. It cannot change after the first start.
    pub broker_nodes: usize,
    /// Whether Postgres has a standby, for which each commit waits.
    pub standby: bool,
}
