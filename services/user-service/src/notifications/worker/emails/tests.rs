use std::time::Duration;

use auth::mails::MailKind;
use serde_json::{Value, json};
use values::{Language, Names as _, Secret};

use super::{AllTexts, Email};
use crate::notifications::worker::notification::{AboutKey, Code};
use crate::notifications::worker::task_mail::TaskMail;
use crate::notifications::{Kind, Notice};

fn with_code(kind: Kind, language: Language, link: &str) -> Email {
    let code = Code {
        kind,
        code: Secret::new("c0de"),
        link: Secret::new(link),
        lifetime: Duration::from_secs(3_600),
    };
    let texts = AllTexts::load().unwrap();
    Email::with_code(&code, "ada@example.com", texts.of(language)).unwrap()
}

fn about_key(notice: Notice, language: Language, name: &str) -> Email {
    let key = AboutKey {
        notice,
        name: name.to_owned(),
        expires: (notice == Notice::KeyExpires).then(|| "2026-12-31T17:00:00Z".parse().unwrap()),
        link: "https://example.com/keys".to_owned(),
    };
    let texts = AllTexts::load().unwrap();
    Email::about_key(&key, texts.of(language)).unwrap()
}

fn about_task(kind: MailKind, language: Language, changes: &Value) -> Email {
    let link = |action: &str| {
        format!(
            "https://example.com/tasks?taskId=65b8f0a2c3d4e5f601234567&version=1&secret=5ec2e7{action}"
        )
    };
    let is_decided = kind == MailKind::Decided;
    let is_cancelled = kind == MailKind::Cancelled;
    let is_ended = is_decided || is_cancelled;
    let is_reminder = matches!(kind, MailKind::Reminder | MailKind::Due);
    let mut mail = json!({
        "id": "65b8f0a2c3d4e5f601234568",
        "attempt": 1,
        "kind": kind.name(),
        "language": language.name(),
        "taskId": "65b8f0a2c3d4e5f601234567",
        "to": "grace@example.com",
        "requester": "ada@example.com",
        "approver": "grace@example.com",
        "title": "Buy a second printer",
        "description": "The **first** one jams:\n\n- every day\n- twice",
        "decisionBy": "2026-12-31T17:00:00.000Z",
        "status": if is_decided { "rejected" } else if is_cancelled { "cancelled" } else { "pending" },
        "decidedBy": is_ended.then_some(if is_decided { "grace@example.com" } else { "ada@example.com" }),
        "comment": is_ended.then_some("Too expensive.\nAsk again next year."),
        "taskLink": link(""),
        "approveLink": (!is_ended).then(|| link("&action=approve")),
        "rejectLink": (!is_ended).then(|| link("&action=reject")),
        "unsubscribeLink": is_reminder.then_some("https://example.com/people-task/reminders/unsubscribe?token=t0ken"),
    });
    for (name, value) in changes.as_object().unwrap() {
        mail[name] = value.clone();
    }
    let mail: TaskMail = serde_json::from_value(mail).unwrap();
    let texts = AllTexts::load().unwrap();
    Email::about_task(&mail, texts.of(mail.language)).unwrap()
}

fn check(name: &str, language: Language, email: &Email) {
    let text = format!("Subject: {}\n\n{}", email.subject, email.plain);
    let name = format!("{name}-{}", language.name());
    insta::assert_snapshot!(name, text.replace('\r', ""));
}

#[test]
fn every_mail_has_its_texts_in_every_language() {
    for &language in Language::ALL {
        for &kind in Kind::ALL {
            let email = with_code(kind, language, "https://example.com/?code=c0de");
            check(kind.name(), language, &email);
        }
        for &notice in Notice::ALL {
            let email = about_key(notice, language, "Invoices in n8n");
            check(notice.name(), language, &email);
        }
        for &kind in MailKind::ALL {
            check(
                kind.name(),
                language,
                &about_task(kind, language, &json!({})),
            );
        }
    }
}

#[test]
fn the_html_has_the_same_texts() {
    let link = "https://example.com/?code=c0de";
    let emails = [
        (
            "code",
            with_code(Kind::ForgotPassword, Language::English, link),
        ),
        (
            "task",
            about_task(MailKind::Reminder, Language::German, &json!({})),
        ),
    ];
    for (name, email) in emails {
        insta::assert_snapshot!(format!("html-{name}"), email.html.replace('\r', ""));
    }
}

#[test]
fn lines_end_with_crlf() {
    let email = about_task(MailKind::Asked, Language::German, &json!({}));
    for text in [email.plain, email.html] {
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    }
}

#[test]
fn a_link_cannot_break_out_of_the_html() {
    let link = "http://x/?a=1&b=\"><script>";
    let html = with_code(Kind::ForgotPassword, Language::English, link).html;
    assert!(html.contains("href=\"http://x/?a=1&#38;b=&#34;&#62;&#60;script&#62;\""));
    assert!(!html.contains("<script>"));
}

#[test]
fn html_in_a_description_loads_nothing_and_links_to_nothing() {
    let hostile = "<img src=\"http://evil.example/i.png\"> <a href='http://evil.example/'>a</a>\n\n\
        ![i](http://evil.example/i.png) [a](http://evil.example/)\n\n<div style=\"background:url(http://evil.example)\">\nb</div>";
    let email = about_task(
        MailKind::Asked,
        Language::English,
        &json!({"description": hostile}),
    );
    assert!(!email.html.contains("<img") && email.html.matches("<a ").count() == 3);
    assert!(!email.html.contains("=\"http://evil") && !email.html.contains("='http://evil"));
    assert!(email.plain.contains(
        "> <img src=\"http://evil.example/i.png\"> <a href='http://evil.example/'>a</a>"
    ));
}

#[test]
fn texts_of_people_cannot_break_out_of_a_mail() {
    let hostile = "</h1><script>x</script>\r\nBcc: eve@example.com\u{202e}";
    let changes = json!({"title": hostile, "description": hostile, "requester": hostile});
    let email = about_task(MailKind::Asked, Language::English, &changes);
    assert!(!email.html.contains("<script>") && !email.html.contains('\u{202e}'));
    assert!(
        email
            .html
            .contains("&#60;/h1&#62;&#60;script&#62;x&#60;/script&#62;")
    );
    assert!(email.plain.contains("> </h1><script>x</script>"));
    assert!(!email.subject.contains(['\r', '\n', '\u{202e}']));
    assert!(!email.plain.lines().any(|line| line.starts_with("Bcc")));
    let comment = json!({"comment": "No.\n\nOpen the task:\n\nhttps://evil.example/"});
    for (kind, label) in [
        (MailKind::Decided, "Comment"),
        (MailKind::Cancelled, "Reason"),
    ] {
        let plain = about_task(kind, Language::English, &comment).plain;
        let quoted = format!("{label}: No.\r\n> Open the task:\r\n> https://evil.example/\r\n");
        assert!(plain.contains(&quoted), "{plain}");
    }
    let long = json!({"title": "é".repeat(500)});
    let subject = about_task(MailKind::Asked, Language::English, &long).subject;
    assert!(
        subject.chars().count() < 120 && subject.ends_with('…'),
        "{subject}"
    );
}

#[test]
fn the_name_of_a_key_cannot_break_out_of_a_mail() {
    let hostile = "</td><script>x</script>\r\nBcc: eve@example.com\u{202e}";
    let email = about_key(Notice::KeyCreated, Language::English, hostile);
    assert!(!email.html.contains("<script>") && !email.html.contains('\u{202e}'));
    assert!(!email.plain.lines().any(|line| line.starts_with("Bcc")));
}
