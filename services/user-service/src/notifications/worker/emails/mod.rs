//! The texts of e-mails: one layout for all of them, as plain text and as HTML, and the texts of each language.
//!
//! In the plain text each link has its own line, so that mail programs detect where it ends, and each line of a text of a
//! person begins with a label or `>`, so that none passes for a line of the layout. The HTML loads nothing, so that opening
//! the message cannot be tracked.

mod foreign_text;
mod texts;

#[cfg(test)]
mod tests;

use askama::Template;
use auth::mails::MailKind;
use values::Secret;

use super::notification::{AboutKey, Code};
use super::task_mail::TaskMail;
use crate::notifications::{Kind, Notice};
use foreign_text::{excerpt, one_line};
use texts::{TaskTexts, Texts};

pub(super) use texts::AllTexts;

const MAX_NAME: usize = 100;
const TITLE_IN_SUBJECT: usize = 100;
const MAX_TITLE: usize = 500;
const MAX_DESCRIPTION: usize = 600;
const MAX_COMMENT: usize = 2_000;

/// An e-mail's subject and its two bodies, with CRLF line ends.
pub(super) struct Email {
    pub(super) subject: String,
    pub(super) plain: String,
    pub(super) html: String,
}

impl Email {
    pub(super) fn with_code(code: &Code, address: &str, all: &Texts) -> askama::Result<Self> {
        let texts = match code.kind {
            Kind::ForgotPassword => &all.forgot_password,
            Kind::VerifyEmail => &all.verify_email,
        };
        let link = code.link.expose();
        let validity = all.validity(code.lifetime);
        let content = Content {
            subject: texts.subject.to_owned(),
            heading: texts.subject.to_owned(),
            paragraphs: vec![texts.reason],
            // The username may be one that the recipient does not know.
            facts: vec![Fact {
                label: all.account,
                value: address.to_owned(),
            }],
            buttons: vec![Button {
                label: texts.button,
                prompt: texts.prompt,
                link,
                is_main: true,
            }],
            copied: Some(Link {
                label: all.copy_link,
                link,
            }),
            notes: vec![validity, texts.otherwise.to_owned()],
            ..Content::default()
        };
        content.render(all.language)
    }

    pub(super) fn about_key(key: &AboutKey, all: &Texts) -> askama::Result<Self> {
        let texts = &all.key;
        let kind = match key.notice {
            Notice::KeyCreated => &texts.created,
            Notice::KeyExpires => &texts.expires,
        };
        let fact = |label, value| Fact { label, value };
        let name = fact(texts.name, one_line(&key.name, MAX_NAME));
        let end = key.expires.map(|end| fact(texts.end, all.moment(end)));
        let content = Content {
            subject: kind.subject.to_owned(),
            heading: kind.subject.to_owned(),
            paragraphs: vec![kind.intro],
            facts: [name].into_iter().chain(end).collect(),
            buttons: vec![Button {
                label: texts.open,
                prompt: texts.open,
                link: &key.link,
                is_main: true,
            }],
            notes: vec![kind.advice.to_owned()],
            ..Content::default()
        };
        content.render(all.language)
    }

    pub(super) fn about_task(mail: &TaskMail, all: &Texts) -> askama::Result<Self> {
        let texts = &all.task;
        let kind = match mail.kind {
            MailKind::Asked => &texts.asked,
            MailKind::Reminder => &texts.reminder,
            MailKind::Due => &texts.due,
            MailKind::Decided if mail.status == "approved" => &texts.approved,
            MailKind::Decided => &texts.rejected,
            MailKind::Cancelled => &texts.cancelled,
        };
        let title = one_line(&mail.title, TITLE_IN_SUBJECT);
        let is_ended = matches!(mail.kind, MailKind::Decided | MailKind::Cancelled);
        let confirm = (!is_ended).then_some(texts.confirm);
        let content = Content {
            subject: format!("{}: {title}", kind.subject),
            heading: one_line(&mail.title, MAX_TITLE),
            paragraphs: vec![kind.intro],
            quote: if is_ended {
                String::new()
            } else {
                excerpt(&mail.description, MAX_DESCRIPTION)
            },
            facts: facts(mail, all),
            buttons: buttons(mail, texts),
            notes: Vec::from_iter(confirm.into_iter().chain([texts.keep]).map(str::to_owned)),
            footer: mail.unsubscribe_link.as_ref().map(|link| Link {
                label: texts.unsubscribe,
                link: link.expose(),
            }),
            ..Content::default()
        };
        content.render(all.language)
    }
}

fn facts<'a>(mail: &TaskMail, all: &'a Texts) -> Vec<Fact<'a>> {
    let texts = &all.task;
    let person = |person: &String| one_line(person, MAX_TITLE);
    let decider = mail.decided_by.as_ref().unwrap_or(&mail.approver);
    let comment = mail.comment.as_deref();
    let comment = comment.map(|comment| excerpt(comment, MAX_COMMENT));
    let facts = match mail.kind {
        MailKind::Decided => [
            (texts.decided_by, Some(person(decider))),
            (texts.comment, comment),
        ],
        MailKind::Cancelled => [
            (texts.cancelled_by, mail.decided_by.as_ref().map(person)),
            (texts.reason, comment),
        ],
        MailKind::Asked | MailKind::Reminder | MailKind::Due => [
            (texts.requested_by, Some(person(&mail.requester))),
            (texts.decide_by, mail.decision_by.map(|at| all.moment(at))),
        ],
    };
    let facts = facts.into_iter();
    let known = facts.filter_map(|(label, value)| value.map(|value| Fact { label, value }));
    known.collect()
}

fn buttons<'a>(mail: &'a TaskMail, texts: &'a TaskTexts) -> Vec<Button<'a>> {
    let button = |label, link: &'a Secret, is_main| Button {
        label,
        prompt: label,
        link: link.expose(),
        is_main,
    };
    let approve = mail.approve_link.as_ref();
    let approve = approve.map(|link| button(texts.approve, link, true));
    let reject = mail.reject_link.as_ref();
    let reject = reject.map(|link| button(texts.reject, link, false));
    let open = button(texts.open, &mail.task_link, approve.is_none());
    approve.into_iter().chain(reject).chain([open]).collect()
}

#[derive(Debug, Default)]
struct Content<'a> {
    subject: String,
    heading: String,
    paragraphs: Vec<&'a str>,
    /// A text of a person, shown as a quotation.
    quote: String,
    facts: Vec<Fact<'a>>,
    buttons: Vec<Button<'a>>,
    /// A link in the HTML to be copied where buttons do not work.
    copied: Option<Link<'a>>,
    notes: Vec<String>,
    footer: Option<Link<'a>>,
}

#[derive(Debug)]
struct Fact<'a> {
    label: &'a str,
    value: String,
}

#[derive(Debug)]
struct Button<'a> {
    label: &'a str,
    /// The same in the plain text, before the link.
    prompt: &'a str,
    link: &'a str,
    is_main: bool,
}

#[derive(Debug)]
struct Link<'a> {
    label: &'a str,
    link: &'a str,
}

#[derive(Template)]
#[template(path = "mail.txt", escape = "none")]
struct Plain<'a> {
    content: &'a Content<'a>,
}

#[derive(Template)]
#[template(path = "mail.html")]
struct Html<'a> {
    language: &'a str,
    content: &'a Content<'a>,
}

impl Content<'_> {
    /// Renders both bodies, with CRLF line ends.
    fn render(self, language: &str) -> askama::Result<Email> {
        let crlf = |text: String| text.lines().map(|line| format!("{line}\r\n")).collect();
        let html = Html {
            language,
            content: &self,
        };
        Ok(Email {
            plain: crlf(Plain { content: &self }.render()?),
            html: crlf(html.render()?),
            subject: self.subject,
        })
    }
}
