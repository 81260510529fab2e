//! Mail servers as companies have them: with a certificate of their own, strict about names, and with refusals.

use std::time::Duration;

use rustls::ServerConfig;
use testkit::{MailServer, PrivateCa, eventually, tls_in_front_of, with_private_ca};

use crate::notification_worker::fixture::{EMAIL, Fixture, Row};

const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const FROM: (&str, &str) = ("MAIL_FROM", "no-reply@example.org");
/// No second attempt within a test.
const LATER: (&str, &str) = ("NOTIFICATION_RETRY_SCHEDULE", "1h");

/// When a mail server speaks TLS.
#[derive(Clone, Copy)]
enum MailTls {
    /// From the beginning.
    Wrapper,
    /// After the command `STARTTLS`.
    StartTls,
}

impl MailTls {
    fn url(self, port: u16) -> String {
        match self {
            Self::Wrapper => format!("smtps://u:p@localhost:{port}"),
            Self::StartTls => format!("smtp://u:p@localhost:{port}?tls=required"),
        }
    }

    /// Lets a server speak TLS. Returns its URL.
    async fn in_front_of(self, server: &MailServer, config: ServerConfig) -> String {
        let target = server.address();
        let starttls = matches!(self, Self::StartTls);
        self.url(tls_in_front_of(target, config, starttls).await)
    }
}

/// Sends one mail and returns its row after the first attempt.
async fn send(fixture: &Fixture, changes: &[(&str, &str)]) -> Row {
    fixture.sql("DELETE FROM users.notifications; DELETE FROM users.users");
    let changes = [&[FROM, LATER], changes].concat();
    let worker = fixture.worker(&changes).await;
    let id = fixture.forgot_password(fixture.user(), "mail");
    let row = eventually("the first attempt", || async {
        Some(fixture.row(id)).filter(|row| row.status == "sent" || row.last_error.is_some())
    })
    .await;
    worker.stop(STOP_TIMEOUT).await;
    row
}

async fn error(fixture: &Fixture, tls: MailTls, config: ServerConfig) -> String {
    let server = MailServer::start().unwrap();
    let url = tls.in_front_of(&server, config).await;
    let row = send(fixture, &[("SMTP_URL", &url)]).await;
    assert!(server.mails().is_empty());
    assert_eq!(row.status, "pending", "the operator can repair it");
    row.last_error.unwrap()
}

#[actix_web::test]
async fn the_trust_store_of_the_system_is_used_and_a_certificates_fault_is_named() {
    let test = "notification_worker::mail_servers::the_trust_store_of_the_system_is_used_and_a_certificates_fault_is_named";
    let Some(ca) = with_private_ca(test) else {
        return;
    };
    for tls in [MailTls::Wrapper, MailTls::StartTls] {
        let (fixture, server) = (Fixture::new().await, MailServer::start().unwrap());
        let url = tls.in_front_of(&server, ca.server("localhost")).await;
        let sent = send(&fixture, &[("SMTP_URL", &url)]).await;
        assert_eq!((sent.status.as_str(), sent.last_error), ("sent", None));
        assert_eq!(server.mails()[0].to, [EMAIL]);

        for (config, fault) in [
            (PrivateCa::new().server("localhost"), "unknown issuer"),
            (ca.server("other.example"), "host name mismatch"),
            (ca.server_until("localhost", 2001), "it has expired"),
        ] {
            let fixture = Fixture::new().await;
            let error = error(&fixture, tls, config).await;
            let expected = format!("the mail server's certificate was refused: {fault}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

#[actix_web::test]
async fn a_server_without_tls_is_not_said_to_be_unreachable() {
    let server = MailServer::start().unwrap();
    let fixture = Fixture::new().await;
    for (url, expected) in [
        (
            MailTls::Wrapper.url(server.address().port()),
            "the mail server did not complete the TLS handshake",
        ),
        (
            MailTls::StartTls.url(server.address().port()),
            "the mail server does not support what SMTP_URL needs",
        ),
        (
            "smtp://localhost:1".to_owned(),
            "the mail server could not be reached",
        ),
    ] {
        let row = send(&fixture, &[("SMTP_URL", &url)]).await;
        assert_eq!(row.last_error.as_deref(), Some(expected));
    }
}

#[actix_web::test]
async fn the_worker_introduces_itself_by_a_full_name() {
    let server = MailServer::start().unwrap();
    let fixture = Fixture::new().await;
    let (url, port) = (server.url(), server.address().port());
    let with_path = format!("smtp://127.0.0.1:{port}/path.example.net");
    for (changes, expected) in [
        (vec![("SMTP_URL", url.as_str())], "EHLO example.org"),
        (
            vec![
                ("SMTP_URL", url.as_str()),
                ("PUBLIC_URL", "https://countersign.example.com"),
            ],
            "EHLO countersign.example.com",
        ),
        (
            vec![
                ("SMTP_URL", url.as_str()),
                ("PUBLIC_URL", "http://127.0.0.1:8080"),
            ],
            "EHLO example.org",
        ),
        (
            vec![("SMTP_URL", with_path.as_str())],
            "EHLO path.example.net",
        ),
        (
            vec![
                ("SMTP_URL", with_path.as_str()),
                ("SMTP_EHLO_NAME", "relay.example.net"),
            ],
            "EHLO relay.example.net",
        ),
    ] {
        let sent = send(&fixture, &changes).await;
        assert_eq!(sent.status, "sent");
        let commands = server.commands();
        let name = commands.iter().rfind(|line| line.starts_with("EHLO"));
        assert_eq!(name.map(String::as_str), Some(expected));
    }
}

#[actix_web::test]
async fn every_attempt_has_the_same_message_id_at_the_senders_domain() {
    let server = MailServer::start().unwrap();
    server.refuse_with(".", "451 greylisted", 1);
    let fixture = Fixture::new().await;
    let (url, retry) = (server.url(), ("NOTIFICATION_RETRY_SCHEDULE", "1ms"));
    let worker = fixture.worker(&[("SMTP_URL", &url), FROM, retry]).await;
    let id = fixture.forgot_password(fixture.user(), "mail");
    assert_eq!(fixture.closed(id).await.status, "sent");
    let ids: Vec<String> = server
        .texts()
        .iter()
        .filter_map(|text| text.lines().find(|line| line.starts_with("Message-ID: ")))
        .map(str::to_owned)
        .collect();
    let expected = format!("Message-ID: <{id}@example.org>");
    assert_eq!(ids, [expected.clone(), expected]);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn only_a_refusal_of_the_mail_itself_ends_it() {
    let server = MailServer::start().unwrap();
    let fixture = Fixture::new().await;
    let url = format!("smtp://u:p@127.0.0.1:{}", server.address().port());
    for (command, reply, status, error) in [
        (
            "RCPT",
            "550 5.1.1 <{to}> no such user",
            "fail",
            "the mail server refused the recipient with 550",
        ),
        (
            "DATA",
            "554 no",
            "fail",
            "the mail server refused the mail with 554",
        ),
        (
            ".",
            "552 5.3.4 too big",
            "fail",
            "the mail server refused the mail with 552",
        ),
        (
            "RCPT",
            "450 greylisted",
            "pending",
            "the mail server responded with 450",
        ),
        (
            "RCPT",
            "530 authentication required",
            "pending",
            "the mail server responded with 530",
        ),
        (
            "RCPT",
            "504 5.5.2 <localhost>: Helo command rejected",
            "pending",
            "the mail server responded with 504",
        ),
        (
            "RCPT",
            "553-5.1.8 <a@b>: Sender address rejected:\r\n553 5.1.8 Domain not found",
            "pending",
            "the mail server responded with 553",
        ),
        (
            "RCPT",
            "554 5.7.1 <{to}>: Relay access denied",
            "pending",
            "the mail server responded with 554",
        ),
        (
            "MAIL",
            "550 bad sender",
            "pending",
            "the mail server responded with 550",
        ),
        (
            "EHLO",
            "550 5.5.0 Invalid EHLO domain",
            "pending",
            "the mail server responded with 550",
        ),
        (
            "AUTH",
            "535 no",
            "pending",
            "the mail server responded with 535",
        ),
        (
            "220",
            "554 no service here",
            "pending",
            "the mail server responded with 554",
        ),
    ] {
        server.refuse_with(command, reply, 100);
        let row = send(&fixture, &[("SMTP_URL", &url)]).await;
        assert_eq!(
            (row.status.as_str(), row.last_error.as_deref(), row.attempts),
            (status, Some(error), 1),
            "{command} {reply}"
        );
    }
    assert!(server.mails().is_empty());
}

#[actix_web::test]
async fn a_connection_is_used_again_and_one_that_the_server_closed_is_not() {
    let server = MailServer::start().unwrap();
    let fixture = Fixture::new().await;
    let url = server.url();
    let worker = fixture.worker(&[("SMTP_URL", &url), FROM]).await;
    let user = fixture.user();
    for _ in 0..2 {
        let id = fixture.forgot_password(user, "mail");
        assert_eq!(fixture.closed(id).await.status, "sent");
    }
    let count = |command: &str| {
        let commands = server.commands();
        commands
            .iter()
            .filter(|line| line.starts_with(command))
            .count()
    };
    assert_eq!((count("EHLO"), server.mails().len()), (1, 2));
    server.refuse_with("NOOP", "421 idle for too long", 1);
    let id = fixture.forgot_password(user, "mail");
    assert_eq!(fixture.closed(id).await.status, "sent");
    assert_eq!((count("EHLO"), server.mails().len()), (2, 3));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_connection_that_is_silently_dead_costs_no_attempt() {
    let server = MailServer::start().unwrap();
    let fixture = Fixture::new().await;
    let url = server.url();
    let worker = fixture.worker(&[("SMTP_URL", &url), FROM, LATER]).await;
    let user = fixture.user();
    for number in 1..=2 {
        let id = fixture.forgot_password(user, "mail");
        let row = fixture.closed(id).await;
        assert_eq!((row.status.as_str(), row.attempts), ("sent", 1));
        assert_eq!(server.mails().len(), number);
        server.refuse_with("NOOP", "", 1);
    }
    worker.stop(STOP_TIMEOUT).await;
}
