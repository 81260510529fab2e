//! How messages look and travel on each channel.

use std::time::Duration;

use app_config::{Reader, Settings as _};
use diesel::sql_types::{Nullable, Text};
use diesel::{QueryableByName, RunQueryDsl as _};
use testkit::eventually;
use user_service::NotificationWorkerSettings;

use crate::notification_worker_mail::MailServer;
use crate::notification_worker_stage::{EMAIL, Stage};

const GRACE: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn an_address_that_is_not_allowed_is_not_called() {
    let stage = Stage::new().await;
    let changes = [
        ("WEBHOOK_ALLOWED_NETWORKS", ""),
        ("NOTIFICATION_RETRY_SCHEDULE", ","),
    ];
    let worker = stage.worker(&changes).await;
    let failed = stage.closed(stage.forgotten(stage.user(), "webhook")).await;
    assert_eq!((failed.status.as_str(), failed.attempts), ("fail", 1));
    assert!(
        failed
            .last_error
            .unwrap()
            .contains("WEBHOOK_ALLOWED_NETWORKS")
    );
    assert!(stage.received().is_empty());
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn an_e_mail_holds_the_link_in_words_and_in_html() {
    let stage = Stage::new().await;
    let server = MailServer::start().await;
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "Countersign <no-reply@example.org>"),
    ];
    let worker = stage.worker(&changes).await;
    let sent = stage.closed(stage.forgotten(stage.user(), "mail")).await;
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
        stage.knows(code),
        "the link has a line of its own and works: {line}"
    );
    assert!(mail.text.contains(&format!("href=\"{start}{code}\"")));
    assert!(mail.text.contains("within 60 minutes"));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_mail_server_that_refuses_is_asked_again_and_no_address_is_kept() {
    let stage = Stage::new().await;
    let server = MailServer::start().await;
    server.refuse(1);
    let url = server.url();
    let changes = [
        ("SMTP_URL", url.as_str()),
        ("MAIL_FROM", "no-reply@example.org"),
        ("NOTIFICATION_RETRY_SCHEDULE", "1500ms"),
    ];
    let worker = stage.worker(&changes).await;
    let id = stage.forgotten(stage.user(), "mail");
    let refused = eventually("the refusal", || async {
        Some(stage.row(id)).filter(|row| row.last_error.is_some())
    })
    .await;
    assert_eq!(
        refused.last_error.as_deref(),
        Some("the mail server answered 451")
    );
    assert_eq!(stage.closed(id).await.status, "sent");
    assert_eq!(server.mails().len(), 1);
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn the_log_is_a_channel_only_when_it_is_turned_on() {
    let stage = Stage::new().await;
    let ada = stage.user();
    let worker = stage.worker(&[("FORGOT_PASSWORD_LOG", "true")]).await;
    assert_eq!(
        stage.closed(stage.forgotten(ada, "log")).await.status,
        "sent"
    );
    worker.stop(GRACE).await;
    let worker = stage.worker(&[("NOTIFICATION_RETRY_SCHEDULE", ",")]).await;
    let failed = stage.closed(stage.forgotten(ada, "log")).await;
    assert_eq!(failed.status, "fail");
    assert_eq!(
        failed.last_error.as_deref(),
        Some("this channel is not configured any more")
    );
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_code_that_confirms_an_address_is_bound_to_it() {
    #[derive(QueryableByName)]
    struct Bound {
        #[diesel(sql_type = Text)]
        purpose: String,
        #[diesel(sql_type = Nullable<Text>)]
        email_key: Option<String>,
    }
    let stage = Stage::new().await;
    let worker = stage
        .worker(&[("VERIFY_EMAIL_URL", "http://x/verify?c={{code}}")])
        .await;
    stage
        .closed(stage.message(Some(stage.user()), "verify-email", "webhook"))
        .await;
    let received = stage.received();
    assert_eq!(received[0].body["kind"], "verify-email");
    assert!(
        received[0].body["link"]
            .as_str()
            .unwrap()
            .starts_with("http://x/verify?c=")
    );
    let bound: Bound = diesel::sql_query("SELECT purpose, email_key FROM users.codes")
        .get_result(&mut stage.database.admin())
        .unwrap();
    assert_eq!(bound.purpose, "verify-email");
    assert_eq!(bound.email_key, Some(EMAIL.to_lowercase()));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_mail_server_needs_a_sender() {
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
