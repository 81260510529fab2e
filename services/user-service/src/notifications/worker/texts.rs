//! The words of e-mails.

use std::time::Duration;

use super::notice::{Kind, Notice};

/// An e-mail's subject and its two bodies, all in ASCII.
pub(super) struct Text {
    pub(super) subject: &'static str,
    pub(super) plain: String,
    pub(super) html: String,
}

struct Words {
    subject: &'static str,
    opening: &'static str,
    invitation: &'static str,
    button: &'static str,
    closing: &'static str,
}

const FORGOT_PASSWORD: Words = Words {
    subject: "Set a new password",
    opening: "Somebody, hopefully you, asked for a new password for this address.",
    invitation: "Open this link to set one:",
    button: "Set a new password",
    closing: "If it was not you, ignore this message: nothing has changed.",
};

const VERIFY_EMAIL: Words = Words {
    subject: "Confirm your e-mail address",
    opening: "Somebody, hopefully you, signed up with this address.",
    invitation: "Open this link to confirm it:",
    button: "Confirm the address",
    closing: "If it was not you, ignore this message.",
};

impl Text {
    pub(super) fn of(notice: &Notice) -> Self {
        let words = match notice.kind {
            Kind::ForgotPassword => &FORGOT_PASSWORD,
            Kind::VerifyEmail => &VERIFY_EMAIL,
        };
        let validity = format!("The link works once, within {}.", in_words(notice.lifetime));
        Self {
            subject: words.subject,
            plain: plain(words, notice.link.expose(), &validity),
            html: html(words, &escaped(notice.link.expose()), &validity),
        }
    }
}

/// The link has a line of its own, without anything that a mail program could take for a part of it.
fn plain(words: &Words, link: &str, validity: &str) -> String {
    let Words {
        opening,
        invitation,
        closing,
        ..
    } = words;
    format!("{opening}\r\n\r\n{invitation}\r\n\r\n{link}\r\n\r\n{validity}\r\n{closing}\r\n")
}

/// Nothing is loaded from anywhere, so opening the message tells nobody.
fn html(words: &Words, link: &str, validity: &str) -> String {
    let Words {
        subject,
        opening,
        invitation,
        button,
        closing,
    } = words;
    [
        "<!DOCTYPE html>".to_owned(),
        "<html lang=\"en\">".to_owned(),
        format!("<head><meta charset=\"utf-8\"><title>{subject}</title></head>"),
        "<body style=\"font-family:sans-serif;line-height:1.5;color:#1a1a1a\">".to_owned(),
        format!("<p>{opening}</p>"),
        format!("<p>{invitation}</p>"),
        "<p><a style=\"display:inline-block;padding:10px 18px;border-radius:6px;".to_owned(),
        "background:#1d4ed8;color:#ffffff;text-decoration:none\"".to_owned(),
        format!("href=\"{link}\">{button}</a></p>"),
        "<p>Or copy this address into your browser:<br>".to_owned(),
        format!("{link}</p>"),
        format!("<p>{validity}<br>"),
        format!("{closing}</p>"),
        "</body>".to_owned(),
        "</html>".to_owned(),
    ]
    .join("\r\n")
        + "\r\n"
}

fn escaped(text: &str) -> String {
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
    use super::*;

    #[test]
    fn durations_are_said_in_words() {
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
        let html = html(
            &FORGOT_PASSWORD,
            &escaped("http://x/?a=1&b=\"><script>"),
            "",
        );
        assert!(html.contains("href=\"http://x/?a=1&amp;b=&quot;&gt;&lt;script&gt;\""));
        assert!(!html.contains("<script>"));
    }
}
