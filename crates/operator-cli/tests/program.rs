//! The program itself. Tests of its commands need a system: they are in `crates/dev/system-tests`, and start the program
//! that is built for this test. What a system does rarely is answered here.
#![expect(
    clippy::unwrap_used,
    reason = "shared code of tests may panic like the tests themselves"
)]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::iter::zip;
use std::net::TcpListener;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

#[test]
fn the_program_says_which_version_it_is() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let output = program.arg("--version").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, format!("countersign {}\n", env!("CARGO_PKG_VERSION")));
}

/// Answers the next request, and returns its first line.
fn answer(gateway: &TcpListener, head: &str, body: &str) -> String {
    let (mut connection, _) = gateway.accept().unwrap();
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let lines = reader.by_ref().lines().map(Result::unwrap);
    let lines: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let length = lines
        .iter()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.parse().unwrap());
    reader.read_exact(&mut vec![0; length]).unwrap();
    let length = body.len();
    write!(
        connection,
        "HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    lines.into_iter().next().unwrap()
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let disk = File::options().write(true).open("/dev/full").unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let program = program.args(["completions", "bash"]).stdout(disk);
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("No space left on device"), "{said}");
}

/// Runs a command that sends these requests, and answers them. Each has the first line without the version, the head of the
/// response, and its body.
fn run(arguments: &[&str], requests: &[(&'static str, &'static str, &'static str)]) -> Output {
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gateway.local_addr().unwrap());
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    program.args(arguments).args(["--url", &url]);
    program.env("COUNTERSIGN_TOKEN", "token");
    // A proxy would get the token.
    program.envs([("http_proxy", "http://127.0.0.1:1"), ("no_proxy", "")]);
    program.env_remove("NO_PROXY");
    let (received, lines) = mpsc::channel();
    let answers = requests.to_vec();
    // More requests than these are refused, because the gateway is closed at the end of the thread.
    thread::spawn(move || {
        for (_, head, body) in answers {
            let _ = received.send(answer(&gateway, head, body));
        }
    });
    let output = program.output().unwrap();
    for (request, ..) in requests {
        let line = lines.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(line, format!("{request} HTTP/1.1"));
    }
    output
}

#[test]
fn all_deliveries_of_a_host_are_sent_again_also_if_they_are_too_many_to_count() {
    let request = "POST /people-task/deliveries/redeliver";
    let answers = [
        r#"{"redelivered":100000,"remaining":100000}"#,
        r#"{"redelivered":100000,"remaining":100000}"#,
        r#"{"redelivered":1000,"remaining":2000}"#,
        r#"{"redelivered":0,"remaining":2000}"#,
    ];
    let output = run(
        &["deliveries", "retry", "--failed", "--host", "a.example"],
        &answers.map(|body| (request, "200 OK", body)),
    );
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "201000 deliveries are sent again. At least 2000 are left: try again.\n"
    );
}

#[test]
fn deliveries_that_can_be_cancelled_are_beside_those_that_cannot() {
    let requests = [
        (
            "POST /people-task/deliveries/a/cancel",
            "409 Conflict",
            r#"{"detail":"It was sent."}"#,
        ),
        ("POST /people-task/deliveries/b/cancel", "404 Not Found", ""),
        ("POST /people-task/deliveries/c/cancel", "200 OK", "{}"),
    ];
    let output = run(&["deliveries", "cancel", "--yes", "a", "b", "c"], &requests);
    assert_eq!(output.status.code(), Some(3));
    let shown = |text| String::from_utf8(text).unwrap();
    assert_eq!(shown(output.stdout), "1 deliveries are cancelled.\n");
    let stderr = shown(output.stderr);
    assert!(stderr.starts_with("a: It was sent.\nb: "), "{stderr}");
}

#[test]
fn keys_are_confirmed_if_all_of_them_exist() {
    let first = "GET /users/keys?limit=1000&offset=0";
    let keys = r#"[{"id":"a","userId":"u"},{"id":"b","userId":"v"}]"#;
    let listed = [(first, "200 OK", keys)];
    let output = run(&["keys", "confirm", "a", "unknown"], &listed);
    assert_eq!(output.status.code(), Some(3));

    let posts = [
        ("POST /users/u/keys/a/confirm", "200 OK", "{}"),
        ("POST /users/v/keys/b/confirm", "200 OK", "{}"),
    ];
    let requests = [&listed[..], &posts].concat();
    let output = run(&["keys", "confirm", "a", "b"], &requests);
    assert!(output.status.success());
}

#[test]
fn what_ends_the_keys_of_a_user_says_so() {
    let user = r#"{"id":"6b0211b15a326b85ddc6477a","username":"ada","email":"ada"}"#;
    let find = ("GET /users/6b0211b15a326b85ddc6477a", "200 OK", user);
    let put = ("PUT /users/6b0211b15a326b85ddc6477a", "200 OK", user);
    let revoke = "POST /users/6b0211b15a326b85ddc6477a/revoke-tokens";
    for (command, change) in [
        (["users", "disable"], put),
        (["users", "reset-password"], put),
        (["tokens", "revoke"], (revoke, "200 OK", user)),
    ] {
        let arguments = [&command[..], &["6b0211b15a326b85ddc6477a"]].concat();
        let said = String::from_utf8(run(&arguments, &[find, change]).stdout).unwrap();
        assert!(said.contains("API keys have ended"), "{said}");
    }
}

#[test]
fn the_link_of_the_first_decision_is_shown_while_a_program_waits_for_it() {
    let created = r#"{"id":"a","approverSecret":"s"}"#;
    let requests = [
        ("GET /readyz", "200 OK", ""),
        ("GET /user", "200 OK", r#"{"email":"ada@example.com"}"#),
        ("POST /people-task/tasks", "200 OK", created),
        (
            "GET /people-task/tasks/a?wait=20",
            "200 OK",
            r#"{"status":"approved"}"#,
        ),
    ];
    let output = run(&["first-decision", "--wait", "--json"], &requests);
    let decided: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(decided["status"], "approved");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/tasks?id=a&secret=s"), "{said}");
}

/// The head of a page of a list after which another one follows.
const FOLLOWED: &str = "200 OK\r\nLink: </next>; rel=\"next\"";

#[test]
fn lists_have_as_many_rows_as_the_limit_says() {
    let full: &'static str = json!(vec![json!({}); 1000]).to_string().leak();
    for (command, requests) in [
        (
            &["users", "list", "--offset", "5"][..],
            [
                "GET /users?limit=1000&offset=5",
                "GET /users?limit=500&offset=1005",
            ],
        ),
        (
            &["deletions", "list"],
            [
                "GET /users/deletions?limit=1000&offset=0",
                "GET /users/deletions?limit=500&offset=1000",
            ],
        ),
        (
            &["keys", "list"],
            [
                "GET /users/keys?limit=1000&offset=0",
                "GET /users/keys?limit=500&offset=1000",
            ],
        ),
    ] {
        let pages = [(FOLLOWED, full), ("200 OK", "[{},{}]")];
        let requests = zip(requests, pages).map(|(request, (head, rows))| (request, head, rows));
        let requests: Vec<_> = requests.collect();
        let output = run(
            &[command, &["--limit", "1500", "--json"]].concat(),
            &requests,
        );
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 1002);
    }
}

/// The last row of the table that a command prints.
fn last_row(arguments: &[&str], answers: &[(&'static str, &'static str)]) -> String {
    let requests = answers
        .iter()
        .map(|(request, body)| (*request, "200 OK", *body));
    let requests: Vec<_> = requests.collect();
    let table = String::from_utf8(run(arguments, &requests).stdout).unwrap();
    table.trim_end().lines().last().unwrap().to_owned()
}

#[test]
fn keys_that_are_off_and_why_deletions_failed_are_in_the_tables() {
    let off = r#"[{"id":"k","lastUsed":null,"confirmed":false}]"#;
    let all = last_row(
        &["keys", "list"],
        &[("GET /users/keys?limit=100&offset=0", off)],
    );
    assert!(all.ends_with("false"), "{all}");
    let answers = [
        ("GET /users/000000000000000000000001", r#"{"id":"u"}"#),
        ("GET /users/u/keys", off),
    ];
    let of_one = last_row(&["keys", "list", "000000000000000000000001"], &answers);
    assert!(of_one.ends_with("false"), "{of_one}");
    let failed = r#"[{"ticket":"t","failure":{"detail":"The engine is down."}}]"#;
    let answers = [("GET /users/deletions?limit=100&offset=0", failed)];
    let deletion = last_row(&["deletions", "list"], &answers);
    assert!(deletion.ends_with("The engine is down."), "{deletion}");
}

#[test]
fn why_deliveries_failed_or_wait_is_in_the_table() {
    for (delivery, shown) in [
        (
            r#"[{"attempts":[{"error":"old"},{"error":"refused","statusCode":null}]}]"#,
            &["refused"][..],
        ),
        (
            r#"[{"attempts":[{"error":"old"},{"error":null,"statusCode":503}]}]"#,
            &["503"],
        ),
        (
            r#"[{"attempts":[],"nextAttempt":"then","suspended":true}]"#,
            &["suspended", "-"],
        ),
        (r#"[{"attempts":[],"nextAttempt":"then"}]"#, &["then", "-"]),
    ] {
        let answers = [("GET /people-task/deliveries?limit=1000&offset=0", delivery)];
        let row = last_row(&["deliveries", "list"], &answers);
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), shown);
    }
}

#[test]
fn deletions_are_repeated_until_there_are_no_more() {
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gateway.local_addr().unwrap());
    let answers = thread::spawn(move || {
        for body in [
            r#"{"retried":1000,"more":true}"#,
            r#"{"retried":2,"more":false}"#,
        ] {
            let request = answer(&gateway, "200 OK", body);
            assert_eq!(request, "POST /users/deletions/retry HTTP/1.1");
        }
    });
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let program = program.args(["deletions", "retry", "--url", &url]);
    let output = program.env("COUNTERSIGN_TOKEN", "token").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "1002 deletions are repeated.\n");
    answers.join().unwrap();
}

#[test]
fn an_administrator_who_must_wait_is_not_missing() {
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", gateway.local_addr().unwrap());
    let answers = thread::spawn(move || {
        let head = "429 Too Many Requests\r\nRetry-After: 30";
        let request = answer(&gateway, head, r#"{"detail":"Too many attempts."}"#);
        assert_eq!(request, "POST /user/auth HTTP/1.1");
    });
    let mut program = Command::new(env!("CARGO_BIN_EXE_countersign"));
    let process = "gateway=http://127.0.0.1:1";
    program.args(["doctor", "--json", "--url", &url, "--process", process]);
    let folder = ("SECRETS_FOLDER", env!("CARGO_TARGET_TMPDIR"));
    program.envs([("ADMIN_PASSWORD", "an earlier password"), folder]);
    let output = program.output().unwrap();
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut findings = findings.as_array().unwrap().iter();
    let found = findings.find(|finding| finding["about"] == "administrator");
    let found = found.unwrap();
    assert_eq!(found["state"], "not set", "{found}");
    let detail = found["detail"].as_str().unwrap();
    assert!(
        detail.contains("Too many attempts. Retry-After: 30 s."),
        "{detail}"
    );
    answers.join().unwrap();
}
