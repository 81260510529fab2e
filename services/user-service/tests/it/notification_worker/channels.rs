//! The channels: webhook, e-mail and log.

use std::time::Duration;

use app_config::{Reader, Settings as _};
use diesel::sql_types::{Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use testkit::{eventually, lines};
use user_service::NotificationWorkerSettings;

use crate::notification_worker::fixture::{EMAIL, Fixture};

const STOP_TIMEOUT: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn a_webhook_outside_the_allowed_networks_is_not_called() {
    let fixture = Fixture::new().await;
    let changes = [
        ("WEBHOOK_ALLOWED_NETWORKS", ""),
        ("NOTIFICATION_RETRY_SCHEDULE", "10ms"),
    ];
    let worker = fixture.worker(&changes).await;
    let failed = fixture
        .closed(fixture.forgot_password(fixture.user(), "webhook"))
        .await;
    assert_eq!((failed.status.as_str(), failed.attempts), ("fail", 2));
    let error = failed.last_error.unwrap();
    assert!(
        error.contains("the host's address is not allowed"),
        "{error}"
    );
    assert!(fixture.received().is_empty());
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn an_email_has_the_link_as_text_and_as_html() {
    let fixture = Fixture::new().await;
    let server = testkit::MailServer::start().unwrap();
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "Countersign <no-reply@example.org>"),
    ];
    let worker = fixture.worker(&changes).await;
    let sent = fixture
        .closed(fixture.forgot_password(fixture.user(), "mail"))
        .await;
    assert_eq!((sent.status.as_str(), sent.last_error), ("sent", None));

    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    let mail = &mails[0];
    assert_eq!(mail.from, "no-reply@example.org");
    assert_eq!(mail.to, [EMAIL]);
    for header in [
        "From: Countersign <no-reply@example.org>\n",
        &format!("To: {EMAIL}\n"),
        "Subject: Set a new password\n",
        "Auto-Submitted: auto-generated\n",
        "Content-Type: multipart/alternative;",
        "Content-Type: text/plain; charset=utf-8\n",
        "Content-Type: text/html; charset=utf-8\n",
    ] {
        assert!(mail.text.contains(header), "{header}\n{}", mail.text);
    }
    let start = "https://example.com/app/reset-password?code=";
    let line = mail
        .text
        .lines()
        .find(|line| line.starts_with(start))
        .unwrap();
    let code = line.strip_prefix(start).unwrap();
    assert!(
        fixture.knows(code),
        "the link has its own line and works: {line}"
    );
    assert!(mail.text.contains(&format!("href=\"{start}{code}\"")));
    assert!(mail.text.contains("within 60 minutes"));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_refused_email_is_retried_and_the_error_has_no_address() {
    let fixture = Fixture::new().await;
    let server = testkit::MailServer::start().unwrap();
    server.refuse(1);
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "no-reply@example.org"),
        ("NOTIFICATION_RETRY_SCHEDULE", "1500ms"),
    ];
    let worker = fixture.worker(&changes).await;
    let id = fixture.forgot_password(fixture.user(), "mail");
    let refused = eventually("the refusal", || async {
        Some(fixture.row(id)).filter(|row| row.last_error.is_some())
    })
    .await;
    assert_eq!(
        refused.last_error.as_deref(),
        Some("the mail server responded with 451")
    );
    assert_eq!(fixture.closed(id).await.status, "sent");
    assert_eq!(server.mails().len(), 1);
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_mail_about_a_key_waits_for_a_mail_server_that_fails_and_a_code_does_not() {
    let fixture = Fixture::new().await;
    let server = testkit::MailServer::start().unwrap();
    server.refuse(u32::MAX);
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "no-reply@example.org"),
        ("NOTIFICATION_RETRY_SCHEDULE", "1ms,1ms"),
    ];
    let ada = fixture.user();
    let code = fixture.forgot_password(ada, "mail");
    let [key, old] =
        ["key-created", "key-expires"].map(|kind| fixture.notification(Some(ada), kind, "mail"));
    fixture.sql(&format!(
        "UPDATE users.notifications SET created = now() - interval '25 hours' WHERE id = decode('{old}', 'hex')"
    ));
    let worker = fixture.worker(&changes).await;
    for given_up in [code, old] {
        let row = fixture.closed(given_up).await;
        assert_eq!((row.status.as_str(), row.attempts), ("fail", 3));
    }
    eventually("an attempt after the last one", || async {
        (fixture.row(key).attempts > 3).then_some(())
    })
    .await;
    server.refuse(0);
    assert_eq!(fixture.closed(key).await.status, "sent");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn without_pauses_a_mail_about_a_key_waits_for_a_mail_server_that_fails() {
    let fixture = Fixture::new().await;
    let changes = [
        ("SMTP_URL", "smtp://localhost:1"),
        ("MAIL_FROM", "no-reply@example.org"),
        ("NOTIFICATION_RETRY_SCHEDULE", "none"),
    ];
    let id = fixture.notification(Some(fixture.user()), "key-created", "mail");
    let worker = fixture.worker(&changes).await;
    let attempted = eventually("the first attempt", || async {
        Some(fixture.row(id)).filter(|row| row.last_error.is_some())
    })
    .await;
    assert_eq!(attempted.status, "pending");
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_mail_about_a_key_that_the_mail_server_may_have_taken_is_repeated_after_hours() {
    let fixture = Fixture::new().await;
    let server = testkit::MailServer::start().unwrap();
    server.refuse_with(".", "no SMTP", u32::MAX);
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "no-reply@example.org"),
        ("NOTIFICATION_RETRY_SCHEDULE", "1ms,1ms"),
    ];
    fixture.notification(Some(fixture.user()), "key-created", "mail");
    let worker = fixture.worker(&changes).await;
    let paused = "SELECT lease::text AS line FROM users.notifications
        WHERE lease_until IS NULL AND next_attempt > now() + interval '5 hours'";
    let attempts = eventually("a pause of hours", || async {
        lines(&mut fixture.database.admin(), paused).pop()
    })
    .await;
    assert_eq!((attempts.as_str(), server.texts().len()), ("3", 3));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn the_log_channel_must_be_turned_on() {
    let fixture = Fixture::new().await;
    let ada = fixture.user();
    let worker = fixture.worker(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    assert_eq!(
        fixture
            .closed(fixture.forgot_password(ada, "log"))
            .await
            .status,
        "sent"
    );
    worker.stop(STOP_TIMEOUT).await;
    let worker = fixture
        .worker(&[("NOTIFICATION_RETRY_SCHEDULE", "10ms")])
        .await;
    let failed = fixture.closed(fixture.forgot_password(ada, "log")).await;
    assert_eq!(failed.status, "fail");
    assert_eq!(
        failed.last_error.as_deref(),
        Some("this channel is no longer configured")
    );
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_verification_code_is_bound_to_the_address() {
    #[derive(QueryableByName)]
    struct Bound {
        #[diesel(sql_type = Text)]
        purpose: String,
        #[diesel(sql_type = Nullable<Text>)]
        email_key: Option<String>,
    }
    let fixture = Fixture::new().await;
    let worker = fixture
        .worker(&[("VERIFY_EMAIL_URL", "http://x/verify?c={{code}}")])
        .await;
    fixture
        .closed(fixture.notification(Some(fixture.user()), "verify-email", "webhook"))
        .await;
    let received = fixture.received();
    assert_eq!(received[0].body["kind"], "verify-email");
    assert!(
        received[0].body["link"]
            .as_str()
            .unwrap()
            .starts_with("http://x/verify?c=")
    );
    let bound: Bound = diesel::sql_query("SELECT purpose, email_key FROM users.codes")
        .get_result(&mut fixture.database.admin())
        .unwrap();
    assert_eq!(bound.purpose, "verify-email");
    assert_eq!(bound.email_key, Some(EMAIL.to_lowercase()));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn smtp_url_requires_mail_from() {
    let pairs = [
        ("DATABASE_URL", "postgres://x"),
        ("AMQP_URL", "amqp://x"),
        ("SMTP_URL", "smtp://localhost"),
    ];
    let mut reader = Reader::from_pairs(pairs).unwrap();
    let error = NotificationWorkerSettings::read(&mut reader).unwrap_err();
    assert!(
        error.to_string().starts_with("MAIL_FROM is not set"),
        "{error}"
    );
}
