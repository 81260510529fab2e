//! The steps of the test: what is broken, and which alerts must fire then.

use std::net::TcpStream;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use local_stack::{Stop, bootstrap, output_of, random};
use nix::sys::signal::Signal;
use rig::{Call, Client, HeldLock, Receiver, Reply, join, lock};
use serde_json::{Value, json};

use super::prometheus::Drill;
use super::system::{MAX_CONNECTIONS, SECOND_GATEWAY, System};

/// What is broken, the alerts that must fire then, and what breaks it. That runs while the alerts are awaited, and at the end of
/// the step it repairs what later steps need.
pub(super) type Step = (
    &'static str,
    &'static [&'static str],
    fn(&Drill<'_>) -> Result<()>,
);

/// The steps in their order. What takes long begins early and is awaited later.
pub(super) const STEPS: [Step; 29] = [
    (
        "a due delivery, a due code and a due mail that no worker can take",
        &[],
        hold_due_rows,
    ),
    // Early, because fast statements of later steps would hide the slow ones. Requests are sent only while the tables are
    // locked, and each waits for the end of the lock: there are no fast ones.
    (
        "tables locked for 3 s again and again, under load",
        &[
            "SlowRequests",
            "DatabasePoolExhausted",
            "GatewaySheddingLoad",
            "AvailabilityBudgetBurnFast",
            "AvailabilityBudgetBurnSlow",
        ],
        |drill| {
            while !drill.is_over() {
                let locked = HeldLock::acquire(&drill.system.rig, LOCK)?;
                thread::scope(|scope| {
                    scope.spawn(|| drill.system.load(40, "/people-task/tasks", None, || true));
                    thread::sleep(Duration::from_secs(3));
                    drop(locked);
                });
            }
            Ok(())
        },
    ),
    // Without other requests, so that the gateway refuses none.
    (
        "decisions that wait for a lock",
        &[
            "DecisionLatencyBudgetBurnFast",
            "DecisionLatencyBudgetBurnSlow",
        ],
        |drill| {
            while !drill.is_over() {
                decide_slowly(drill.system)?;
            }
            Ok(())
        },
    ),
    ("API keys that are used", &[], use_keys),
    (
        "lower thresholds, and a process of another version",
        &["MemoryHigh", "DatabaseConnectionsNearMax", "VersionsDiffer"],
        |_| Ok(()),
    ),
    (
        "a message that cannot be read",
        &["DeadLettersPresent"],
        publish_nonsense,
    ),
    (
        "a worker killed three times",
        &["ProcessRestarting"],
        restart_worker,
    ),
    (
        "deletions while the flow engine is down",
        &["DeletionsFailed"],
        |drill| {
            let (gateway, token) = (&drill.system.gateway, &drill.system.token);
            let user = gateway.sign_up_new("deleted")?;
            gateway.start_deletion(token, &user.id).map(drop)
        },
    ),
    ("codes for a receiver that is down", &[], |drill| {
        (0..10).try_for_each(|_| request_code(drill.system))
    }),
    (
        "a second gateway with a private key that cannot be read",
        &["TlsReloadFailing"],
        |drill| Ok(fs::write(&drill.system.private_key, "not a key")?),
    ),
    (
        "more connections than it serves",
        &["ConnectionsRefused"],
        |drill| {
            let address = drill.system.rig.process(SECOND_GATEWAY)?.address()?;
            drill.keep_up(|| {
                let connect = |_| TcpStream::connect(address);
                let connections = (0..MAX_CONNECTIONS * 4).map(connect);
                let connections: Result<Vec<_>, _> = connections.collect();
                connections.context("connecting to the second gateway")?;
                Ok(())
            })
        },
    ),
    // The number of open files changes, so the limit follows it.
    (
        "few file descriptors left",
        &["FileDescriptorsHigh"],
        |drill| {
            let worker = drill.system.rig.process("webhook-worker")?;
            let pid = worker.identity().context("it does not run")?.pid;
            drill.keep_up(|| {
                let open = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
                let limit = format!("--nofile={}:", open + 3);
                let mut command = Command::new("prlimit");
                output_of(command.args(["--pid", &pid.to_string(), &limit])).map(drop)
            })
        },
    ),
    // After a few failures the account is not even looked at for a while, so these are fast.
    (
        "sign-ins with a wrong password",
        &["SignInFailuresHigh"],
        |drill| {
            let wrong = json!({"username": "wrong@example.com", "password": "a wrong password"});
            drill.load(4, "/user/auth", Some(&wrong))
        },
    ),
    (
        "40 sign-ups at a time, with passwords that take longer and longer",
        &["PasswordHashingSaturated"],
        sign_up_together,
    ),
    (
        "the due delivery, the due code and the due mail",
        &[
            "WebhookDeliveriesStopped",
            "WebhookDeliveriesDelayed",
            "OutboxOverdue",
            "TaskMailsStopped",
        ],
        |drill| {
            drill.keep_up(|| Ok(()))?;
            lock(&drill.system.held).clear();
            Ok(())
        },
    ),
    // Before receivers fail.
    (
        "deliveries that were held with it",
        &[
            "DeliveryLatencyBudgetBurnFast",
            "DeliveryLatencyBudgetBurnSlow",
        ],
        |_| Ok(()),
    ),
    (
        "codes that were not sent",
        &["NotificationsFailing"],
        |_| Ok(()),
    ),
    (
        "a worker that ends each time that it sends a delivery",
        &["WebhookDeliveriesParked"],
        end_worker_while_it_sends,
    ),
    (
        "a receiver that responds with 410",
        &["WebhookDeliveriesFailed"],
        |drill| drill.system.decide(1, &drill.system.gone),
    ),
    (
        "a receiver of webhooks that is silent",
        &["ReceiverCircuitsOpen"],
        |drill| drill.system.decide(30, &drill.system.silent),
    ),
    (
        "mails about these tasks that were not sent",
        &["TaskMailsFailing"],
        |_| Ok(()),
    ),
    (
        "a key of mails about tasks that replaces theirs",
        &["TaskMailsDropped"],
        |drill| {
            let restart = |settings: &[(&'static str, &str)]| -> Result<()> {
                drill.system.restart_with("people-task-service", settings)?;
                drill.system.restart_with("notification-worker", settings)
            };
            restart(&[(
                "TASK_MAIL_KEY",
                "a key that no mail of before was made with",
            )])?;
            drill.keep_up(|| Ok(()))?;
            restart(&[])
        },
    ),
    (
        "a user who creates more than all may have",
        &["QuotaNearlyUsed", "QuotaExceeded"],
        |drill| {
            let limits = [("QUOTA_USER_BYTES", "1"), ("QUOTA_BYTES", "1")];
            drill.system.restart_with("people-task-service", &limits)?;
            for _ in 0..400 {
                let created = drill.system.create_task();
                ensure!(created.is_err(), "the task was not refused");
            }
            drill.keep_up(|| Ok(()))?;
            drill.system.restart_with("people-task-service", &[])
        },
    ),
    (
        "API keys that have ended, and no others",
        &["ApiKeysRefused"],
        |drill| drill.keep_up(|| use_ended_key(drill.system)),
    ),
    (
        "a gateway whose log no one reads, under load",
        &["LogLinesDropped"],
        |drill| {
            drill.system.restart_unread("gateway")?;
            drill.load(40, "/people-task/tasks", None)
        },
    ),
    ("RabbitMQ killed", &[], |drill| {
        drill.system.rig.servers()?.rabbitmq.stop(Stop::Kill)
    }),
    (
        "the user service's role may not connect to Postgres",
        &["NotReady", "RevocationFeedStale", "HighErrorRate"],
        revoke_database,
    ),
    (
        "the people-task service killed",
        &[
            "ProcessDown",
            "InstanceDown",
            "GatewayCircuitOpen",
            "UserChangesWaiting",
        ],
        |drill| {
            drill.system.rig.process("people-task-service")?.kill()?;
            let (gateway, token) = (&drill.system.gateway, &drill.system.token);
            let user = gateway.sign_up_new("deactivated")?;
            let change = json!({"isActive": false});
            gateway.put(&format!("/users/{}", user.id), token, change)?;
            drill.load(4, "/people-task/tasks", None)
        },
    ),
    ("RabbitMQ is still down", &["BrokerConnectionLost"], |_| {
        Ok(())
    }),
];

const LOCK: &str = "LOCK TABLE people_task.tasks, people_task.task_states;";

/// Locks the rows, which workers cannot take then.
fn hold_due_rows(drill: &Drill<'_>) -> Result<()> {
    let system = drill.system;
    // The rate of a counter needs one delivery before those that are late.
    system.decide(1, &system.other_version)?;
    drill.wait_for_change("webhook_decision_to_delivery_seconds_count", None)?;
    let workers = ["webhook-worker", "notification-worker"].map(|name| system.rig.process(name));
    let signal = |which| {
        for worker in workers.iter().flatten() {
            worker.signal(which);
        }
    };
    signal(Signal::SIGSTOP);
    system.decide(1, &system.silent)?;
    system.decide(20, &system.other_version)?;
    request_code(system)?;
    let held = HeldLock::acquire(
        &system.rig,
        "SELECT FROM people_task.deliveries FOR UPDATE; SELECT FROM users.notifications FOR UPDATE; \
         SELECT FROM people_task.task_mails FOR UPDATE;",
    )?;
    lock(&system.held).push(held);
    signal(Signal::SIGCONT);
    Ok(())
}

/// Each key is exchanged once for a token that is valid for minutes. What increases is what Prometheus has read before.
fn use_keys(drill: &Drill<'_>) -> Result<()> {
    const EXCHANGED: &str = "gateway_key_exchanges_total{outcome=\"exchanged\"}";
    let (gateway, token) = (&drill.system.gateway, &drill.system.token);
    for _ in 0..2 {
        let before = drill.prometheus.query(EXCHANGED);
        let made = gateway.post("/user/keys", token, json!({"name": "alerts"}))?;
        gateway.get("/people-task/tasks", made.text("/key")?)?;
        drill.wait_for_change(EXCHANGED, before)?;
    }
    Ok(())
}

fn use_ended_key(system: &System) -> Result<()> {
    let (gateway, token) = (&system.gateway, &system.token);
    let made = gateway.post("/user/keys", token, json!({"name": "alerts"}))?;
    gateway.delete(&format!("/user/keys/{}", made.text("/id")?), token)?;
    gateway.once(&Call::new("GET", "/people-task/tasks").token(made.text("/key")?))?;
    Ok(())
}

fn request_code(system: &System) -> Result<()> {
    let user = system.gateway.sign_up_new("code")?;
    let request = json!({"email": user.email});
    let path = "/user/forgot-password";
    system.gateway.post(path, &system.token, request).map(drop)
}

fn publish_nonsense(drill: &Drill<'_>) -> Result<()> {
    let broker = drill.system.rig.servers()?.rabbitmq.description();
    let publish =
        Call::new("POST", "/api/exchanges/%2f/webhook.due-deliveries/publish").body(json!({
            "properties": {"delivery_mode": 2},
            "routing_key": "",
            "payload": "nonsense",
            "payload_encoding": "string",
        }));
    let publish = publish.header("authorization", broker.authorization());
    let (_, _, answer) = Client::new(&broker.management_url).once(&publish)?;
    let is_routed = answer.get("routed").and_then(Value::as_bool);
    ensure!(is_routed == Some(true), "no worker has got the message");
    Ok(())
}

fn restart_worker(drill: &Drill<'_>) -> Result<()> {
    const STARTED: &str = "process_start_time_seconds{job=\"deletion-worker\"}";
    drill.wait_for_change(STARTED, None)?;
    for _ in 0..3 {
        // Prometheus must see each start, and the metric has whole seconds.
        thread::sleep(Duration::from_secs(1));
        let before = drill.prometheus.query(STARTED);
        drill.system.restart_with("deletion-worker", &[])?;
        drill.wait_for_change(STARTED, before)?;
    }
    Ok(())
}

/// A delivery is parked after two claims that were lost with others and five that were lost alone.
fn end_worker_while_it_sends(drill: &Drill<'_>) -> Result<()> {
    let system = drill.system;
    let (request, requests) = mpsc::channel();
    let receiver = Receiver::open(move |_| {
        let _ = request.send(());
        Reply::Hang
    })?;
    system.decide(1, &receiver)?;
    for attempt in 1..=7 {
        let sending = requests.recv_timeout(drill.left());
        sending.with_context(|| format!("attempt {attempt} did not begin"))?;
        system.rig.process("webhook-worker")?.kill()?;
        // What else this worker has sent is not the next attempt.
        requests.try_iter().for_each(drop);
        system.restart_with("webhook-worker", &[])?;
    }
    Ok(())
}

/// The queue has room for some passwords only, so on a fast machine more sign-ups would not make them wait longer, and each
/// password must take longer.
fn sign_up_together(drill: &Drill<'_>) -> Result<()> {
    const ROUND: Duration = Duration::from_secs(25);
    let email = format!("together.{}@example.com", random::tag());
    let body = json!({"email": email, "password": "a password"});
    for cost in 12..=17 {
        let cost = cost.to_string();
        drill
            .system
            .restart_with("user-service", &[("BCRYPT_COST", &cost)])?;
        let end = drill.elapsed() + ROUND;
        // The address is looked at after the password has been hashed.
        drill.system.load(40, "/user", Some(&body), || {
            drill.is_over() || drill.elapsed() > end
        });
        if drill.is_over() {
            break;
        }
    }
    drill.keep_up(|| Ok(()))?;
    drill.system.restart_with("user-service", &[])
}

fn decide_slowly(system: &System) -> Result<()> {
    const HELD_FOR: Duration = Duration::from_secs(1);
    let tasks = (0..4).map(|_| system.create_task());
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let locked = HeldLock::acquire(&system.rig, LOCK)?;
    thread::scope(|scope| {
        let approving = tasks
            .iter()
            .map(|task| scope.spawn(|| system.gateway.approve(&system.token, task)));
        let approving: Vec<_> = approving.collect();
        thread::sleep(HELD_FOR);
        drop(locked);
        approving.into_iter().try_for_each(|one| join(one)?)
    })
}

fn revoke_database(drill: &Drill<'_>) -> Result<()> {
    let admin_url = &drill.system.rig.backing.admin_url;
    bootstrap::execute(
        admin_url,
        "ALTER ROLE users_service NOLOGIN; \
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'users_service';",
    )?;
    let credentials = json!({"username": "nobody@example.com", "password": "a password"});
    drill.load(8, "/user/auth", Some(&credentials))?;
    bootstrap::execute(admin_url, "ALTER ROLE users_service LOGIN")
}
