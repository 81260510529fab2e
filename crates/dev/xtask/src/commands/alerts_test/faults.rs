//! The steps of the test: what is broken, and which alerts must fire then.

use std::{process::Command, thread, time::Duration};

use anyhow::{Context, ensure};
use local_stack::{Stop, random};
use nix::sys::signal::Signal;
use serde_json::json;

use super::{
    second_gateway,
    system::{System, text},
};

/// A step.
pub(super) struct Step {
    pub(super) how: &'static str,
    pub(super) alerts: &'static [&'static str],
    pub(super) limit: Duration,
    pub(super) provoke: fn(&System) -> anyhow::Result<()>,
    /// Repairs what later steps need.
    pub(super) end: fn(&System) -> anyhow::Result<()>,
}

const SHORT: Duration = Duration::from_secs(40);
const LONG: Duration = Duration::from_secs(200);

const fn step(
    how: &'static str,
    alerts: &'static [&'static str],
    provoke: fn(&System) -> anyhow::Result<()>,
) -> Step {
    Step {
        how,
        alerts,
        limit: SHORT,
        provoke,
        end: |_| Ok(()),
    }
}

/// The steps in their order. What takes long begins early and is awaited later.
pub(super) const STEPS: [Step; 23] = [
    step(
        "a due delivery, a due code and a due mail that no worker can take",
        &[],
        hold_due_rows,
    ),
    // Early, because fast statements of later steps would hide the slow ones.
    step(
        "tables locked for 2 s again and again, under load",
        &[
            "SlowRequests",
            "DatabasePoolExhausted",
            "GatewaySheddingLoad",
        ],
        lock_tables,
    ),
    step(
        "lower thresholds, and a process of another version",
        &["MemoryHigh", "DatabaseConnectionsNearMax", "VersionsDiffer"],
        |_| Ok(()),
    ),
    step(
        "a message that cannot be read",
        &["DeadLettersPresent"],
        publish_nonsense,
    ),
    step(
        "a worker killed three times",
        &["ProcessRestarting"],
        restart_worker,
    ),
    step(
        "deletions while the flow engine is down",
        &["DeletionsFailed"],
        fail_deletion,
    ),
    step("codes for a receiver that is down", &[], |system| {
        (0..10).try_for_each(|_| request_codes(system, 1))
    }),
    step(
        "a second gateway with a private key that cannot be read",
        &["TlsReloadFailing"],
        second_gateway::break_private_key,
    ),
    step(
        "more connections than it serves",
        &["ConnectionsRefused"],
        second_gateway::connect_often,
    ),
    step(
        "few file descriptors left",
        &["FileDescriptorsHigh"],
        limit_descriptors,
    ),
    step(
        "sign-ins with a wrong password for 20 s",
        &["SignInFailuresHigh"],
        fail_sign_ins,
    ),
    step(
        "40 sign-ups at a time",
        &["PasswordHashingSaturated"],
        sign_up_together,
    ),
    Step {
        limit: LONG,
        ..step(
            "the due delivery, the due code and the due mail",
            &[
                "WebhookDeliveriesStopped",
                "WebhookDeliveriesDelayed",
                "OutboxOverdue",
                "TaskMailsStopped",
            ],
            |_| Ok(()),
        )
    },
    step(
        "codes that were not sent",
        &["NotificationsFailing"],
        |_| Ok(()),
    ),
    Step {
        limit: LONG,
        ..step(
            "a worker that ends each time that it sends a delivery",
            &["WebhookDeliveriesParked"],
            end_worker_while_it_sends,
        )
    },
    step(
        "a receiver that responds with 410",
        &["WebhookDeliveriesFailed"],
        |system| system.decide(1, &system.receivers.gone),
    ),
    step(
        "a receiver of webhooks that is silent",
        &["ReceiverCircuitsOpen"],
        |system| system.decide(30, &system.receivers.silent),
    ),
    step(
        "mails about these tasks that were not sent",
        &["TaskMailsFailing"],
        |_| Ok(()),
    ),
    step(
        "a gateway whose log no one reads, under load",
        &["LogLinesDropped"],
        leave_log_unread,
    ),
    step("RabbitMQ killed", &[], |system| {
        Ok(system.servers.rabbitmq.stop(Stop::Kill)?)
    }),
    Step {
        end: |system| system.sql("ALTER ROLE users_service LOGIN"),
        ..step(
            "the user service's role may not connect to Postgres",
            &["NotReady", "RevocationFeedStale", "HighErrorRate"],
            revoke_database,
        )
    },
    step(
        "the people-task service killed",
        &["ProcessDown", "InstanceDown", "GatewayCircuitOpen"],
        kill_service,
    ),
    Step {
        limit: LONG,
        ..step("RabbitMQ is still down", &["BrokerConnectionLost"], |_| {
            Ok(())
        })
    },
];

/// Locks the rows, which workers cannot take then.
fn hold_due_rows(system: &System) -> anyhow::Result<()> {
    system.signal("webhook-worker", Signal::SIGSTOP)?;
    system.signal("notification-worker", Signal::SIGSTOP)?;
    system.decide(1, &system.receivers.silent)?;
    request_codes(system, 1)?;
    system.sql_in_background(
        "BEGIN; SELECT FROM people_task.deliveries FOR UPDATE; SELECT FROM users.notifications FOR UPDATE; \
         SELECT FROM people_task.task_mails FOR UPDATE; SELECT pg_sleep(180); COMMIT;"
            .to_owned(),
    );
    let locked = "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(180)%') \
                  THEN RAISE 'not yet'; END IF; END $$";
    let held = local_stack::process::wait_until(SHORT, || system.sql(locked).ok());
    held.context("the rows could not be locked")?;
    system.signal("webhook-worker", Signal::SIGCONT)?;
    system.signal("notification-worker", Signal::SIGCONT)
}

fn request_codes(system: &System, count: usize) -> anyhow::Result<()> {
    let email = format!("code.{}@example.com", unique()?);
    system.post("/user", json!({"email": email, "password": "a password"}))?;
    for _ in 0..count {
        system.post("/user/forgot-password", json!({"email": email}))?;
    }
    Ok(())
}

fn publish_nonsense(system: &System) -> anyhow::Result<()> {
    let broker = system.servers.rabbitmq.description();
    let body = json!({
        "properties": {"delivery_mode": 2},
        "routing_key": "webhook.due-deliveries",
        "payload": "nonsense",
        "payload_encoding": "string",
    });
    let status = Command::new("curl")
        .args([
            "--silent",
            "--fail",
            "--max-time",
            "10",
            "--output",
            "/dev/null",
        ])
        .args([
            "--user",
            &format!("{}:{}", broker.username, broker.password),
        ])
        .args(["--header", "Content-Type: application/json"])
        .args(["--data", &body.to_string()])
        .arg(format!(
            "{}/api/exchanges/%2f/amq.default/publish",
            broker.management_url
        ))
        .status()
        .context("running curl")?;
    ensure!(status.success(), "the message could not be published");
    Ok(())
}

fn restart_worker(system: &System) -> anyhow::Result<()> {
    for _ in 0..3 {
        system.kill("deletion-worker")?;
        system.restart("deletion-worker")?;
        // Prometheus must see each start.
        thread::sleep(Duration::from_secs(3));
    }
    Ok(())
}

fn fail_deletion(system: &System) -> anyhow::Result<()> {
    let email = format!("deleted.{}@example.com", unique()?);
    let created = system.post("/user", json!({"email": email, "password": "a password"}))?;
    let user = created.get("user").context("there is no user")?;
    system.delete(&format!("/users/{}", text(user, "id")?))
}

/// A delivery is parked after two claims that were lost with others and three that were lost alone.
fn end_worker_while_it_sends(system: &System) -> anyhow::Result<()> {
    let mut accepted = system.receivers.accepted();
    system.decide(1, &system.receivers.counting)?;
    for attempt in 1..=5 {
        let sending = || (system.receivers.accepted() > accepted).then_some(());
        let sending = local_stack::process::wait_until(LONG, sending);
        sending.with_context(|| format!("attempt {attempt} did not begin"))?;
        system.kill("webhook-worker")?;
        accepted = system.receivers.accepted();
        system.restart("webhook-worker")?;
    }
    Ok(())
}

fn leave_log_unread(system: &System) -> anyhow::Result<()> {
    system.kill("gateway")?;
    system.restart_unread("gateway")?;
    system.load(40, Duration::from_secs(15), "/people-task/tasks", None);
    Ok(())
}

fn limit_descriptors(system: &System) -> anyhow::Result<()> {
    let pid = system.identity("webhook-worker")?.pid;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    let status = Command::new("prlimit")
        .args([
            "--pid",
            &pid.to_string(),
            &format!("--nofile={}:", open + 3),
        ])
        .status()
        .context("running prlimit")?;
    ensure!(status.success(), "prlimit failed");
    Ok(())
}

fn fail_sign_ins(system: &System) -> anyhow::Result<()> {
    let wrong = json!({"username": "wrong@example.com", "password": "a wrong password"});
    // After a few failures the account is not even looked at for a while, so these are fast.
    system.load(4, Duration::from_secs(20), "/user/auth", Some(&wrong));
    Ok(())
}

fn sign_up_together(system: &System) -> anyhow::Result<()> {
    let email = format!("together.{}@example.com", unique()?);
    let body = json!({"email": email, "password": "a password"});
    // The address is looked at after the password has been hashed.
    system.load(40, Duration::from_secs(25), "/user", Some(&body));
    Ok(())
}

fn lock_tables(system: &System) -> anyhow::Result<()> {
    let script = "BEGIN; LOCK TABLE people_task.tasks, people_task.task_states; SELECT pg_sleep(2); COMMIT;\n";
    // The load ends first: fast requests after the last lock would hide the slow ones.
    system.sql_in_background(script.repeat(13));
    system.load(40, Duration::from_secs(22), "/people-task/tasks", None);
    Ok(())
}

fn revoke_database(system: &System) -> anyhow::Result<()> {
    system.sql(
        "ALTER ROLE users_service NOLOGIN; \
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'users_service';",
    )?;
    let credentials = json!({"username": "nobody@example.com", "password": "a password"});
    system.load(8, Duration::from_secs(20), "/user/auth", Some(&credentials));
    Ok(())
}

fn kill_service(system: &System) -> anyhow::Result<()> {
    system.kill("people-task-service")?;
    system.load(4, Duration::from_secs(15), "/people-task/tasks", None);
    Ok(())
}

fn unique() -> anyhow::Result<String> {
    let password = random::password()?;
    Ok(password.get(..10).unwrap_or_default().to_owned())
}
