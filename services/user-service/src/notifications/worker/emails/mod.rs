//! The texts of e-mails: one template per kind of notification, as plain text and as HTML.
//!
//! Templates are ASCII. In the plain text the link has its own line, so that mail programs detect where it
//! ends. The HTML loads nothing, so that opening the message cannot be tracked.

use std::time::Duration;

use super::notification::Notification;
use crate::notifications::kind::Kind;

/// An e-mail's subject and its two bodies, with CRLF line ends.
pub(super) struct Email {
    pub(super) subject: &'static str,
    pub(super) plain: String,
    pub(super) html: String,
}

impl Email {
    pub(super) fn new(notification: &Notification) -> Self {
        let (subject, plain, html) = match notification.kind {
            Kind::ForgotPassword => (
                "Set a new password",
                include_str!("forgot_password.txt"),
                include_str!("forgot_password.html"),
            ),
            Kind::VerifyEmail => (
                "Confirm your e-mail address",
                include_str!("verify_email.txt"),
                include_str!("verify_email.html"),
            ),
        };
        let link = notification.link.expose();
        Self {
            subject,
            plain: render(plain, link, notification.lifetime),
            html: render(html, &escape_html(link), notification.lifetime),
        }
    }
}

fn render(template: &str, link: &str, lifetime: Duration) -> String {
    template
        .replace('\n', "\r\n")
        .replace("{{validity}}", &in_words(lifetime))
        .replace("{{link}}", link)
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (number, unit) = if seconds >= 7_200 && seconds.is_multiple_of(3_600) {
        (seconds / 3_600, "hour")
    } else if seconds >= 60 {
        (seconds / 60, "minute")
    } else {
        (seconds, "second")
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use values::{Names as _, Secret, UserId};

    use super::*;

    fn email(kind: Kind, link: &str) -> Email {
        Email::new(&Notification {
            kind,
            user: UserId::generate(),
            email: "ada@example.com".to_owned(),
            created: Utc::now(),
            code: Secret::new("c0de"),
            link: Secret::new(link),
            lifetime: Duration::from_secs(3_600),
        })
    }

    #[test]
    fn every_kind_has_its_texts() {
        for &kind in Kind::ALL {
            let email = email(kind, "https://example.com/?code=c0de");
            assert!(email.plain.is_ascii() && email.html.is_ascii());
            let text = format!("{}\n\n{}\n{}", email.subject, email.plain, email.html);
            insta::assert_snapshot!(kind.name(), text.replace('\r', ""));
        }
    }

    #[test]
    fn lines_end_with_crlf() {
        let email = email(Kind::ForgotPassword, "https://example.com/");
        for text in [email.plain, email.html] {
            assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        }
    }

    #[test]
    fn durations_are_written_in_words() {
        for (seconds, words) in [
            (1, "1 second"),
            (60, "1 minute"),
            (3_600, "60 minutes"),
            (86_400, "24 hours"),
            (5_400, "90 minutes"),
        ] {
            assert_eq!(in_words(Duration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn a_link_cannot_break_out_of_the_html() {
        let html = email(Kind::ForgotPassword, "http://x/?a=1&b=\"><script>").html;
        assert!(html.contains("href=\"http://x/?a=1&amp;b=&quot;&gt;&lt;script&gt;\""));
        assert!(!html.contains("<script>"));
    }
}
