//! Restores a dump of `deploy/backup` into an empty system.

use std::time::Instant;

use anyhow::Context;
use local_stack::{Servers, Stop, bootstrap};

use super::{backup_script::BackupScript, open_work::OpenWork};
use rig::{
    interrupt::Interrupt, launch::Running, output::say, processes::ensure_all_alive,
    workspace::Workspace,
};

/// Takes a backup while work is pending, replaces the database server and the broker by empty ones, restores it, and
/// checks that the work completes.
pub(super) fn test(
    workspace: &Workspace,
    running: &mut Running,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    say("restoring a dump of deploy/backup into a new cluster with an empty RabbitMQ");
    let work = OpenWork::start(&running.stack)?;
    let script = BackupScript::new(workspace, &running.stack.postgres.admin);
    let dump = script.dump()?;
    script.refuses_to_restore(&dump, "add --replace")?;
    work.check_pending()?;
    let servers = Servers::find(&workspace.servers())?.context("there are no servers")?;
    let admin_url = running.stack.postgres.admin.clone();
    running.restart(workspace, interrupt, || {
        replace(&servers)?;
        bootstrap::run(&admin_url, &servers.description().postgres.passwords)?;
        script.restore(&dump)
    })?;
    let restored = Instant::now();
    work.check_completed(&running.stack, restored)
        .context("after restoring into an empty system")?;
    ensure_all_alive(&running.processes)
}

/// Replaces both servers by empty ones at the same addresses.
fn replace(servers: &Servers) -> anyhow::Result<()> {
    servers.stop(Stop::Kill)?;
    servers.postgres.discard()?;
    servers.rabbitmq.discard()?;
    servers.postgres.spawn()?;
    servers.rabbitmq.spawn()?;
    servers.postgres.wait_ready()?;
    Ok(servers.rabbitmq.wait_ready()?)
}
