//! The command line for operators, run as a process against a running system.

mod deliveries;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use testkit::eventually;

use crate::harness::System;

const ADA: &str = "ada@example.com";
const REQUESTER: &str = "requester@example.com";
const APPROVER: &str = "approver@example.com";

/// The program. Cargo builds it for the tests of its own package, and puts it above the folder of this test's program.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("countersign");
    let advice = "run the tests of the whole workspace, so that cargo builds it";
    assert!(
        program.is_file(),
        "there is no {}: {advice}",
        program.display()
    );
    program
}

/// The command line with the environment that it has in the container of the user service.
pub(crate) struct CommandLine {
    pub(crate) environment: Vec<(&'static str, String)>,
}

/// What a command printed, and its exit code.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    stderr: String,
}

impl CommandLine {
    pub(crate) fn of(system: &System) -> Self {
        let processes = system.serve_metrics().into_iter();
        let processes = processes.map(|(name, address)| format!("{name}=http://{address}"));
        let processes: Vec<_> = processes.collect();
        Self {
            environment: vec![
                ("COUNTERSIGN_URL", system.http.base().to_owned()),
                ("COUNTERSIGN_PROCESSES", processes.join(",")),
                ("ADMIN_PASSWORD", System::PASSWORD.to_owned()),
                ("AMQP_URL", system.setting("AMQP_URL")),
                ("DATABASE_URL", system.database.urls.users_service.clone()),
            ],
        }
    }

    /// The variables that it reads.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().map(|(n, v)| (*n, v.as_str()))
    }

    /// Runs it on a thread of its own, because it blocks.
    async fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, &[], "").await
    }

    pub(crate) async fn run_with(
        &self,
        arguments: &[&str],
        changed: &[(&str, &str)],
        input: &str,
    ) -> Ran {
        let mut command = Command::new(program());
        let environment = self.environment();
        command
            .args(arguments)
            .env_clear()
            .envs(environment.chain(changed.iter().copied()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let ran = tokio::task::spawn_blocking(move || child.wait_with_output());
        Ran::from(ran.await.unwrap().unwrap())
    }

    /// Runs a command that must succeed, and parses its output.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_are_created_disabled_enabled_promoted_and_get_new_passwords() {
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let created = cli.json(&["users", "create", ADA]).await;
    let password = created["password"].as_str().unwrap();
    let signed_in = system.sign_in(ADA, password).await.expect(200);
    let token = signed_in.text_of("token");

    let disabled = cli.run(&["users", "disable", ADA]).await;
    assert_eq!(disabled.code, 0, "{}", disabled.stderr);
    assert!(
        disabled.stdout.contains("is disabled"),
        "{}",
        disabled.stdout
    );
    assert_eq!(system.sign_in(ADA, password).await.status, 403);
    eventually("the token to be revoked", || async {
        let reply = system.http.get("/user").bearer(&token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
    let _ = cli
        .json(&["users", "enable", created["id"].as_str().unwrap()])
        .await;
    let _ = system.sign_in(ADA, password).await.expect(200);

    let arguments = ["users", "reset-password", ADA, "--password-stdin"];
    let reset = cli.run_with(&arguments, &[], "another password\n").await;
    assert_eq!((reset.code, reset.stderr.as_str()), (0, ""));
    assert!(!reset.stdout.contains("another password"));
    assert_eq!(system.sign_in(ADA, password).await.status, 401);
    let _ = system.sign_in(ADA, "another password").await.expect(200);

    let admin = cli.json(&["users", "make-admin", ADA]).await;
    assert_eq!(admin["scope"], json!(["user", "admin"]));
    let environment = [
        ("ADMIN_USERNAME", ADA),
        ("ADMIN_PASSWORD", "another password"),
    ];
    let listed = cli
        .run_with(&["users", "list", "--json"], &environment, "")
        .await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);

    let audit = system
        .get("/audit?filter=action:user-updated", &system.admin)
        .await;
    assert_eq!(audit.json.as_array().unwrap().len(), 4, "{}", audit.text);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_another_username_than_address_is_changed_by_identifier_only() {
    const CHIEF: &str = "chief@example.com";
    const EVE: &str = "eve@example.org";
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let names = json!({"username": CHIEF, "email": EVE, "password": System::PASSWORD});
    let reply = system.http.post("/user").json(&names).send().await;
    let id = reply.expect(200).json["user"]["id"].clone();
    let id = id.as_str().unwrap();
    for command in [
        &["users", "make-admin"][..],
        &["users", "disable"],
        &["users", "enable"],
        &["users", "reset-password"],
        &["users", "delete"],
        &["tokens", "revoke"],
        &["deletions", "cancel"],
    ] {
        let ticket: &[&str] = if command[0] == "deletions" {
            &["ticket"]
        } else {
            &[]
        };
        for (name, yes) in [(CHIEF, &["--yes"][..]), (EVE, &["--yes"]), (CHIEF, &[])] {
            let refused = cli.run(&[command, &[name], ticket, yes].concat()).await;
            assert_eq!(refused.code, 4, "{command:?}: {}", refused.stderr);
            for shown in [CHIEF, EVE, id, "Nothing was done"] {
                assert!(refused.stderr.contains(shown), "{}", refused.stderr);
            }
        }
    }
    assert_eq!(cli.json(&["users", "show", CHIEF]).await["isActive"], true);
    let promoted = cli.run(&["users", "make-admin", id]).await;
    assert_eq!(promoted.code, 0, "{}", promoted.stderr);
    let both = format!("{CHIEF} (e-mail address {EVE})");
    assert!(promoted.stdout.contains(&both), "{}", promoted.stdout);
    // One address in another case is one name.
    system.sign_up(ADA).await;
    let admin = cli
        .json(&["users", "make-admin", "ADA@example.com", "--yes"])
        .await;
    assert_eq!(admin["email"], ADA);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_destroyed_without_a_confirmation() {
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let token = system.sign_up(ADA).await;
    for command in [
        &["users", "delete", ADA][..],
        &["tokens", "revoke-all"],
        &["dead-letters", "discard", "deletions"],
        &["deliveries", "cancel", "--host", "gone.example.com"],
        &["keys", "drop", "token"],
    ] {
        let refused = cli.run(command).await;
        assert_eq!(refused.code, 4, "{command:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
    }
    let _ = system.get("/user", &token).await;

    let revoked = cli.run(&["tokens", "revoke-all", "--yes"]).await;
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    let keys = "`countersign keys confirm";
    assert!(revoked.stdout.contains(keys), "{}", revoked.stdout);
    eventually("every token to be revoked", || async {
        let reply = system.http.get("/user").bearer(&token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
    eventually("new tokens to be accepted", || async {
        (cli.run(&["users", "list"]).await.code == 0).then_some(())
    })
    .await;
    let deleted = cli.json(&["users", "delete", ADA, "--yes"]).await;
    let ticket = deleted["ticket"].as_str().unwrap();
    let listed = cli.json(&["deletions", "list"]).await;
    assert_eq!(listed[0]["ticket"], ticket);
    let user = listed[0]["userId"].as_str().unwrap().to_owned();
    eventually("the deletion to end", || async {
        let status = cli.json(&["deletions", "status", &user, ticket]).await;
        (status["status"] == "completed").then_some(())
    })
    .await;
    let retried = cli.json(&["deletions", "retry"]).await;
    assert_eq!(retried, json!({"retried": 0, "more": false}));
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_shows_every_process() {
    let mut system = System::start().await;
    let cli = CommandLine::of(&system);
    let states = cli.json(&["status"]).await;
    let states = states.as_array().unwrap();
    assert_eq!(states.len(), 6);
    for state in states {
        assert_eq!(state["ready"], true, "{state}");
        assert_eq!(state["version"], env!("CARGO_PKG_VERSION"));
    }
    eventually("the depth of the queue to be shown", || async {
        let table = cli.run(&["status"]).await.stdout;
        let shown = [
            "PROCESS",
            "age of the revocation feed",
            "queue=webhook.due-deliveries",
        ];
        shown.iter().all(|text| table.contains(text)).then_some(())
    })
    .await;
    system.stop_workers().await;
    let failing = cli.run(&["status"]).await;
    assert_eq!(failing.code, 1);
    assert!(failing.stdout.contains("NOT READY"), "{}", failing.stdout);
    assert!(failing.stderr.contains("3 of 6"), "{}", failing.stderr);
    system.start_workers().await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_one_user_are_revoked() {
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let (token, other) = (
        system.sign_up(ADA).await,
        system.sign_up("bob@example.com").await,
    );
    let revoked = cli.json(&["tokens", "revoke", ADA]).await;
    assert_eq!(revoked["username"], ADA);
    eventually("the token to be revoked", || async {
        let reply = system.http.get("/user").bearer(&token).send().await;
        (reply.status == 401).then_some(())
    })
    .await;
    let _ = system.get("/user", &other).await;
    let unknown = cli.run(&["tokens", "revoke", "eve@example.com"]).await;
    assert_eq!(unknown.code, 3, "{}", unknown.stderr);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_in_a_folder_of_secrets() {
    let secrets = tempfile::tempdir().unwrap();
    let folder = secrets.path().to_str().unwrap();
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/make-secrets");
    let made = Command::new(deploy).arg(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let path = std::env::var("PATH").unwrap();
    let cli = CommandLine {
        environment: vec![("SECRETS_FOLDER", folder.to_owned()), ("PATH", path)],
    };
    let before = cli.json(&["keys", "status", "token"]).await;
    assert_eq!(before["second"], Value::Null);
    let prepared = cli.json(&["keys", "prepare", "token"]).await;
    assert_eq!(prepared["signing"], before["signing"]);
    let switched = cli.json(&["keys", "switch", "token"]).await;
    assert_eq!(switched["signing"], prepared["second"]);
    assert_eq!(switched["second"], before["signing"]);
    let again = cli.run(&["keys", "prepare", "token"]).await;
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("second key already"),
        "{}",
        again.stderr
    );
    let dropped = cli.json(&["keys", "drop", "token", "--yes"]).await;
    assert_eq!(dropped["signing"], switched["signing"]);
    assert_eq!(dropped["second"], Value::Null);
    let rotated = cli.json(&["keys", "rotate", "webhook"]).await;
    // Their own name, beside the one from before there were API keys.
    let named = cli.json(&["signing-keys", "status", "webhook"]).await;
    assert_eq!(named["signing"], rotated["signing"]);
    assert_ne!(rotated["signing"], rotated["second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_have_exit_codes_and_say_what_to_do() {
    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let unknown = cli.run(&["users", "show", "unknown@example.com"]).await;
    assert_eq!(unknown.code, 3, "{}", unknown.stderr);
    let wrong = [("ADMIN_PASSWORD", "wrong password")];
    let refused = cli.run_with(&["users", "list"], &wrong, "").await;
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let none = cli
        .run_with(&["users", "list"], &[("ADMIN_PASSWORD", "")], "")
        .await;
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("ADMIN_PASSWORD_FILE"),
        "{}",
        none.stderr
    );
    let closed = [("COUNTERSIGN_URL", "http://127.0.0.1:9")];
    let unreachable = cli.run_with(&["users", "list"], &closed, "").await;
    assert_eq!(unreachable.code, 1);
    assert!(
        unreachable.stderr.contains("does not respond"),
        "{}",
        unreachable.stderr
    );
    assert_eq!(cli.run(&["users", "lost"]).await.code, 2);
    let weak = cli
        .run_with(&["users", "create", ADA, "--password-stdin"], &[], "1\n")
        .await;
    assert_eq!(weak.code, 1);
    assert!(weak.stderr.contains("password"), "{}", weak.stderr);
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_checked_without_a_connection() {
    let cli = CommandLine {
        environment: Vec::new(),
    };
    let check = ["config", "check", "webhook-worker"];
    let missing = cli.run(&check).await;
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("DATABASE_URL"),
        "{}",
        missing.stderr
    );
    let wrong = [("LOG_FORMAT", "xml")];
    let wrong = cli.run_with(&check, &wrong, "").await;
    assert!(wrong.stderr.contains("LOG_FORMAT"), "{}", wrong.stderr);
    let completions = cli.run(&["completions", "bash"]).await;
    assert!(
        completions.stdout.contains("dead-letters"),
        "{}",
        completions.stdout
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_are_made_listed_confirmed_and_ended() {
    const FLOWS: &str = "flows@example.com";

    let system = System::start().await;
    let cli = CommandLine::of(&system);
    let created = cli.json(&["users", "create", FLOWS, "--service"]).await;
    assert_eq!(created["service"], true);
    assert_eq!(created.get("password"), None);
    let create = [
        "keys",
        "create",
        FLOWS,
        "--name",
        "Flows",
        "--scope",
        "tasks:read",
    ];
    let made = cli.json(&create).await;
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let _ = system.get("/people-task/tasks-count", key).await;
    let wrong = [
        "keys",
        "create",
        FLOWS,
        "--name",
        "Flows",
        "--scope",
        "everything",
    ];
    let wrong = cli.run(&wrong).await;
    assert!(
        wrong.code == 1 && wrong.stderr.contains("tasks:decide"),
        "{}",
        wrong.stderr
    );
    for list in [&["keys", "list", FLOWS][..], &["keys", "list"]] {
        let listed = cli.json(list).await;
        assert_eq!(listed[0]["id"], *id);
        assert!(!listed.to_string().contains("csk_"));
    }

    let restored = "UPDATE users.credentials SET incarnation = 'earlier' RETURNING name AS line";
    let off = testkit::lines(&mut system.database.admin(), restored);
    assert_eq!(off, ["Flows"]);
    let waiting = cli.json(&["keys", "list", "--unconfirmed"]).await;
    assert_eq!(waiting[0]["id"], *id);
    let refused = cli.run(&["keys", "confirm", "--all"]).await;
    assert!(
        refused.code == 4 && refused.stderr.contains("--yes"),
        "{}",
        refused.stderr
    );
    let unknown = cli
        .run(&["keys", "confirm", "000000000000000000000000"])
        .await;
    assert_eq!(unknown.code, 3, "{}", unknown.stderr);
    assert_eq!(cli.json(&["keys", "confirm", id]).await["confirmed"], 1);
    assert_eq!(
        cli.json(&["keys", "confirm", "--all", "--yes"]).await["confirmed"],
        0
    );
    let _ = cli.json(&["keys", "end", FLOWS, id]).await;
    assert_eq!(cli.json(&["keys", "list", FLOWS]).await, json!([]));
    system.stop().await;
}
