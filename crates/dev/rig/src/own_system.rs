//! What the tools that run a system of their own start it with.

use anyhow::Context as _;
use local_stack::{Durability, Options, Parts, Servers, bootstrap};

use crate::output::say;
use crate::plan::Backing;
use crate::workspace::Workspace;

const DATABASE: &str = "countersign";

/// Servers with an empty database.
#[derive(Debug)]
pub struct OwnServers {
    /// Postgres and RabbitMQ.
    pub servers: Servers,
    /// How processes reach them.
    pub backing: Backing,
    /// The Postgres URL of the superuser.
    pub admin_url: String,
}

/// Which servers to start.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The nodes of RabbitMQ.
    pub broker_nodes: usize,
    /// Whether Postgres has a standby, for which each commit waits.
    pub standby: bool,
}

impl Layout {
    /// One server of each kind.
    pub const SINGLE: Self = Self {
        broker_nodes: 1,
        standby: false,
    };
}

/// Starts Postgres and RabbitMQ, and prepares the database.
///
/// # Errors
/// A server does not start, or the database cannot be prepared.
pub fn start_servers(
    workspace: &Workspace,
    durability: Durability,
    layout: Layout,
) -> anyhow::Result<OwnServers> {
    say("starting Postgres and RabbitMQ");
    let options = Options {
        folder: workspace.servers(),
        durability,
        parts: Parts::Both,
        broker_nodes: layout.broker_nodes,
        standby: layout.standby,
    };
    let servers = Servers::start(&options, &say)?;
    let description = servers.description();
    let admin_url = description.postgres.admin_url_of(DATABASE)?;
    let databases = bootstrap::run(&admin_url, &description.postgres.passwords)
        .context("preparing the database")?;
    let backing = Backing {
        databases,
        amqp: description.rabbitmq.amqp_url,
    };
    Ok(OwnServers {
        servers,
        backing,
        admin_url,
    })
}
