//! E-mails to a real mail server: Python's `aiosmtpd`, which is installed from PyPI into `target` if it is
//! missing. `aiosmtpd_server.py` starts it. Only `.ci/run` runs these tests, because they need PyPI.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::eventually;

use crate::notification_worker::fixture::{EMAIL, Fixture, LINK};

const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// The password needs percent-encoding in a URL.
const CREDENTIALS: [&str; 2] = ["countersign", "p@ss:word/1"];

/// The server's process; it ends when its standard input is dropped.
struct Smtp {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u64,
}

impl Smtp {
    fn start() -> Self {
        let python = python_with_aiosmtpd().ok_or("python3 with venv, or PyPI, is missing");
        let python = python.unwrap();
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/it/notification_worker/aiosmtpd_server.py");
        let mut process = Command::new(python)
            .args(["-W", "ignore"])
            .arg(script)
            .args(CREDENTIALS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = next(&mut lines).get("port").unwrap().as_u64().unwrap();
        Self {
            process,
            lines,
            port,
        }
    }

    fn url(&self) -> String {
        format!(
            "smtp://countersign:p%40ss%3Aword%2F1@127.0.0.1:{}",
            self.port
        )
    }

    /// Waits for a message.
    fn mail(&mut self) -> Value {
        next(&mut self.lines)
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
}

/// A Python that can import `aiosmtpd`.
fn python_with_aiosmtpd() -> Option<PathBuf> {
    let system = PathBuf::from("python3");
    if has_aiosmtpd(&system) {
        return Some(system);
    }
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("aiosmtpd");
    // Held until the end of this function, so that concurrent tests install it once.
    let lock = File::create(place.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let own = place.join("bin/python");
    if has_aiosmtpd(&own) {
        return Some(own);
    }
    let install = ["-m", "pip", "install", "--quiet", "aiosmtpd==1.4.6"];
    let made = runs(&system, &["-m", "venv", place.to_str()?]) && runs(&own, &install);
    made.then_some(own)
}

fn has_aiosmtpd(python: &Path) -> bool {
    runs(python, &["-c", "import aiosmtpd"])
}

fn runs(program: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    let command = command.args(arguments).stdout(Stdio::null());
    let quiet = command.stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[actix_web::test]
#[ignore = "needs python3 with venv and access to PyPI"]
async fn aiosmtpd_accepts_the_email_and_both_bodies_have_the_link() {
    let mut server = Smtp::start();
    let fixture = Fixture::new().await;
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "Das Büro <no-reply@example.org>"),
    ];
    let worker = fixture.worker(&changes).await;
    let sent = fixture
        .closed(fixture.forgot_password(fixture.user(), "mail"))
        .await;
    assert_eq!((sent.status.as_str(), sent.last_error), ("sent", None));

    let mail = server.mail();
    assert_eq!(mail["sender"], "no-reply@example.org");
    assert_eq!(mail["recipients"], json!([EMAIL]));
    assert_eq!(mail["headers"]["from"], "Das Büro <no-reply@example.org>");
    assert_eq!(mail["headers"]["to"], EMAIL);
    assert_eq!(mail["headers"]["subject"], "Set a new password");
    assert_eq!(mail["headers"]["auto-submitted"], "auto-generated");
    assert!(mail["headers"]["date"].is_string() && mail["headers"]["message-id"].is_string());
    assert_eq!(mail["defects"], json!([]));
    assert_eq!(mail["bare_line_ends"], 0);
    assert_eq!(mail["ascii"], true);
    assert!(mail["longest_line"].as_u64() <= Some(998));

    assert_eq!(mail["type"], "multipart/alternative");
    let parts = mail["parts"].as_array().unwrap();
    let types: Vec<_> = parts.iter().map(|part| &part["type"]).collect();
    assert_eq!(
        types,
        ["text/plain", "text/html"],
        "the richest form comes last"
    );
    let text = |part: usize| parts[part]["text"].as_str().unwrap();
    let (start, _) = LINK.split_once("{{code}}").unwrap();
    let mut lines = text(0).lines();
    let line = lines.find(|line| line.starts_with(start)).unwrap();
    let code = line.strip_prefix(start).unwrap();
    assert!(fixture.knows(code), "the link has its own line: {line}");
    assert!(text(1).contains(&format!("href=\"{start}{code}\"")));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
#[ignore = "needs python3 with venv and access to PyPI"]
async fn rejected_smtp_credentials_are_reported_and_the_email_is_sent_later() {
    let mut server = Smtp::start();
    let fixture = Fixture::new().await;
    let wrong = format!("smtp://countersign:wrong@127.0.0.1:{}", server.port);
    let from = ("MAIL_FROM", "no-reply@example.org");
    let retry = ("NOTIFICATION_RETRY_SCHEDULE", "1s");
    let worker = fixture
        .worker(&[("SMTP_URL", wrong.as_str()), from, retry])
        .await;
    let id = fixture.forgot_password(fixture.user(), "mail");
    let refused = eventually("the refusal", || async {
        Some(fixture.row(id)).filter(|row| row.last_error.is_some())
    })
    .await;
    assert_eq!(
        refused.last_error.as_deref(),
        Some("the mail server responded with 535")
    );
    worker.stop(STOP_TIMEOUT).await;

    let url = server.url();
    let worker = fixture
        .worker(&[("SMTP_URL", url.as_str()), from, retry])
        .await;
    assert_eq!(fixture.closed(id).await.status, "sent");
    assert_eq!(server.mail()["recipients"], json!([EMAIL]));
    worker.stop(STOP_TIMEOUT).await;
}
