//! Restores a dump of `deploy/backup` into an empty system. At the time of the backup a delivery, a deletion and a
//! notification are pending, none of which can be completed because the flow engine, which also receives webhooks and codes,
//! is down.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use local_stack::{Servers, Stop, bootstrap, output_of, packages, wait_until};
use rig::{Call, System, say};
use serde_json::{Value, json};

use super::drill::{Drill, PASSWORD, WORK_LIMIT};

/// Tells the users of this drill from those of others.
const NUMBER: usize = 1_000;
const NEW_PASSWORD: &str = "a password by a code";

struct OpenWork<'run> {
    /// Ada's task is decided, Bob is being deleted, and Carol forgot the password.
    drill: Drill<'run>,
    delivery: String,
    /// The path of the deletion's status.
    deletion: String,
}

impl<'run> OpenWork<'run> {
    fn start(system: &'run System) -> Result<Self> {
        let drill = Drill::start(system, NUMBER)?;
        let down = Call::new("PUT", "/control").body(json!({"down": true}));
        drill.engine.call(&down)?.expect(200)?;
        let (gateway, token) = (&drill.gateway, &drill.admin_token);
        gateway.approve(&drill.ada.token, &drill.task)?;
        let failed = wait_until(WORK_LIMIT, || {
            let delivery = load_delivery(&drill).ok()?;
            let attempts = delivery.get("attempts")?.as_array()?.len();
            (attempts > 0).then_some(delivery)
        });
        let delivery = failed.context("the delivery was not tried")?;
        let id = delivery.get("id").and_then(Value::as_str);
        let id = id.context("the delivery has no identifier")?.to_owned();
        let deletion = gateway.start_deletion(token, &drill.bob.id)?;
        let forgot = json!({"email": drill.carol.email});
        let forgot = Call::new("POST", "/user/forgot-password").body(forgot);
        gateway.call(&forgot)?.expect(200)?;
        Ok(Self {
            drill,
            delivery: id,
            deletion,
        })
    }

    fn check_pending(&self) -> Result<()> {
        let drill = &self.drill;
        let delivery = load_delivery(drill)?;
        let status = delivery.get("status");
        let is_pending = status == Some(&json!("pending"));
        ensure!(is_pending, "the delivery is not pending: {delivery}");
        let deletion = drill.gateway.get(&self.deletion, &drill.admin_token)?;
        let (status, body) = (deletion.text("/status")?, &deletion.body);
        ensure!(
            status == "in-progress",
            "the deletion is not in progress: {body}"
        );
        let received = drill.engine.received(&self.codes())?;
        ensure!(received.is_empty(), "the code was sent already");
        Ok(())
    }

    /// The query of the codes that Carol was sent.
    fn codes(&self) -> String {
        format!("kind=forgot-password&email={}", self.drill.carol.email)
    }

    /// Checks that all of it completes in the restored system, whose flow engine works.
    fn check_completed(&self, restored: Instant) -> Result<()> {
        self.drill.check_tokens(restored)?;
        self.check_delivered()?;
        self.check_deleted()?;
        self.check_code()?;
        let elapsed = restored.elapsed().as_secs_f64();
        say(&format!(
            "  all pending work is completed, {elapsed:.1} s after the start"
        ));
        Ok(())
    }

    fn check_delivered(&self) -> Result<()> {
        let call = self.drill.wait_delivered()?;
        let (id, expected) = (call.pointer("/headers/webhook-id"), json!(self.delivery));
        ensure!(
            id == Some(&expected),
            "the webhook-id is not {expected}: {call}"
        );
        say("  the pending delivery arrived under the webhook-id of before");
        Ok(())
    }

    fn check_deleted(&self) -> Result<()> {
        let gateway = &self.drill.gateway;
        let admin = self.drill.system.sign_in_admin()?;
        gateway.wait_deleted(&self.deletion, &admin.token, WORK_LIMIT, |_| {})?;
        let email = &self.drill.bob.email;
        gateway.try_sign_in(email, PASSWORD)?.expect(401)?;
        say("  the deletion is completed");
        Ok(())
    }

    /// The code that was sent sets a new password.
    fn check_code(&self) -> Result<()> {
        let code = wait_until(WORK_LIMIT, || {
            let calls = self.drill.engine.received(&self.codes()).ok()?;
            let code = calls.last()?.pointer("/body/code")?.as_str();
            code.map(str::to_owned)
        });
        let code = code.context("the code was not sent")?;
        let reset = json!({"code": code, "password": NEW_PASSWORD});
        let reset = Call::new("POST", "/user/forgot-password/reset").body(reset);
        let gateway = &self.drill.gateway;
        gateway.call(&reset)?.expect(200)?;
        gateway.sign_in(&self.drill.carol.email, NEW_PASSWORD)?;
        say("  the pending code was sent, and sets a new password");
        Ok(())
    }
}

fn load_delivery(drill: &Drill<'_>) -> Result<Value> {
    let path = format!("/people-task/tasks/{}/deliveries", drill.task);
    let deliveries = drill.gateway.get(&path, &drill.ada.token)?.body;
    deliveries.get(0).cloned().context("there is no delivery")
}

/// Takes a backup while work is pending, replaces the database server and the broker by empty ones, restores it, and
/// checks that the work completes.
pub(super) fn test_empty_system(system: &System) -> Result<()> {
    say("restoring a dump of deploy/backup into a new cluster with an empty RabbitMQ");
    let work = OpenWork::start(system)?;
    let admin_url = &system.backing.admin_url;
    let dump = dump(system)?;
    let Err(refused) = restore(system, &dump) else {
        bail!("deploy/backup restored a dump into a database with data");
    };
    let refused = refused.to_string();
    ensure!(refused.contains("add --replace"), "{refused}");
    let mut script = backup(system, &["restore".as_ref(), "--replace".as_ref(), &dump])?;
    let Err(failed) = output_of(script.env("PGOPTIONS", "-c default_transaction_read_only=on"))
    else {
        bail!("deploy/backup restored a dump into a database that is read-only");
    };
    let failed = failed.to_string();
    ensure!(failed.contains("could not be restored"), "{failed}");
    work.check_pending()?;
    let servers = system.servers()?;
    system.restart(|| {
        replace(servers)?;
        bootstrap::run(admin_url, &servers.description().postgres.passwords)?;
        restore(system, &dump)?;
        // As after an upgrade.
        let later = "CREATE TABLE users.later (user_id bytea REFERENCES users.users)";
        bootstrap::execute(admin_url, later)?;
        run_backup(system, &["restore".as_ref(), "--replace".as_ref(), &dump])?;
        bootstrap::execute(admin_url, IS_ANALYSED)
    })?;
    let restored = Instant::now();
    work.check_completed(restored)
        .context("after restoring into an empty system")?;
    system.ensure_all_alive()
}

/// Fails if there are no statistics.
const IS_ANALYSED: &str = "DO $$ BEGIN
    ASSERT EXISTS (SELECT FROM pg_statistic WHERE starelid = 'people_task.tasks'::regclass), 'the tables are not analysed';
END $$";

/// Replaces both servers by empty ones at the same addresses.
fn replace(servers: &Servers) -> Result<()> {
    servers.stop(Stop::Kill)?;
    servers.postgres.discard()?;
    servers.rabbitmq.discard()?;
    servers.postgres.spawn()?;
    servers.rabbitmq.spawn()?;
    servers.postgres.wait_ready()?;
    servers.rabbitmq.wait_ready()
}

/// Writes a dump, and returns its file.
fn dump(system: &System) -> Result<PathBuf> {
    let folder = system.workspace.local.join("backups");
    run_backup(system, &["dump".as_ref(), &folder])?;
    let files = fs::read_dir(&folder).context("reading the folder of dumps")?;
    let is_dump = |file: &PathBuf| file.extension().is_some_and(|name| name == "dump");
    let files = files.flatten().map(|entry| entry.path());
    let dumps: Vec<_> = files.filter(is_dump).collect();
    let [dump] = dumps.as_slice() else {
        bail!("deploy/backup wrote {} dumps", dumps.len());
    };
    run_backup(system, &["verify".as_ref(), &folder])?;
    Ok(dump.clone())
}

fn restore(system: &System, dump: &Path) -> Result<()> {
    run_backup(system, &["restore".as_ref(), dump])
}

fn run_backup(system: &System, arguments: &[&Path]) -> Result<()> {
    output_of(&mut backup(system, arguments)?).map(drop)
}

/// The script `deploy/backup` as operators run it.
fn backup(system: &System, arguments: &[&Path]) -> Result<Command> {
    let programs = packages::postgres_programs()?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = [programs].into_iter().chain(env::split_paths(&path));
    let mut script = Command::new(system.workspace.root.join("deploy/backup"));
    script.args(arguments);
    script.env("PATH", env::join_paths(path)?);
    script.env("BACKUP_DATABASE_URL", &system.backing.admin_url);
    Ok(script)
}
