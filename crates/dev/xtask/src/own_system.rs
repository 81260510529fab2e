//! What the tools that run a system of their own start it with.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use local_stack::{Durability, Options, Parts, Servers, bootstrap};

use crate::output::say;
use crate::plan::Backing;
use crate::workspace::Workspace;

const DATABASE: &str = "countersign";

/// Copies the programs, so that a build during the run does not change them.
///
/// # Errors
/// A file cannot be copied.
pub fn copy_programs(
    workspace: &Workspace,
    programs: BTreeMap<String, PathBuf>,
) -> anyhow::Result<BTreeMap<String, PathBuf>> {
    let folder = workspace.local().join("bin");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let copy = |(name, built): (String, PathBuf)| {
        let target = folder.join(&name);
        // A copy rather than a hard link: the linker may write into the existing file.
        fs::copy(&built, &target).with_context(|| format!("copying {}", built.display()))?;
        Ok((name, target))
    };
    programs.into_iter().map(copy).collect()
}

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

/// Starts Postgres and RabbitMQ, and prepares the database.
///
/// # Errors
/// A server does not start, or the database cannot be prepared.
pub fn start_servers(workspace: &Workspace, durability: Durability) -> anyhow::Result<OwnServers> {
    say("starting Postgres and RabbitMQ");
    let options = Options {
        folder: workspace.servers(),
        durability,
        parts: Parts::Both,
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
