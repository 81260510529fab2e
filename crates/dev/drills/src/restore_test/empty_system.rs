//! Restores a dump of `deploy/backup` into an empty system.

use std::time::Instant;

use anyhow::Context;
use local_stack::{Servers, Stop, bootstrap};

use super::{backup_script::BackupScript, open_work::OpenWork};
use rig::{output::say, system::System};

/// Takes a backup while work is pending, replaces the database server and the broker by empty ones, restores it, and
/// checks that the work completes.
pub(super) fn test(system: &System) -> anyhow::Result<()> {
    say("restoring a dump of deploy/backup into a new cluster with an empty RabbitMQ");
    let work = OpenWork::start(system)?;
    let admin_url = &system.backing.admin_url;
    let script = BackupScript::new(&system.workspace, admin_url);
    let dump = script.dump()?;
    script.refuses_to_restore(&dump, "add --replace")?;
    work.check_pending()?;
    let servers = system.servers()?;
    system.restart(|| {
        replace(servers)?;
        bootstrap::run(admin_url, &servers.description().postgres.passwords)?;
        script.restore(&dump)
    })?;
    let restored = Instant::now();
    work.check_completed(restored)
        .context("after restoring into an empty system")?;
    system.ensure_all_alive()
}

/// Replaces both servers by empty ones at the same addresses.
fn replace(servers: &Servers) -> anyhow::Result<()> {
    servers.stop(Stop::Kill)?;
    servers.postgres.discard()?;
    servers.rabbitmq.discard()?;
    servers.postgres.spawn()?;
    servers.rabbitmq.spawn()?;
    servers.postgres.wait_ready()?;
    servers.rabbitmq.wait_ready()
}
