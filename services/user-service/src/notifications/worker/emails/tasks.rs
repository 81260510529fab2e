//! Mails about tasks.

use super::Email;
use super::foreign_text::{excerpt, one_line};
use super::layout::{Button, Content, Fact, Link};
use super::texts::{KindTexts, TaskTexts, Texts};
use crate::notifications::worker::task_mail::{MailKind, TaskMail};

/// The characters of a title in a subject.
const TITLE_IN_SUBJECT: usize = 100;
const MAX_TITLE: usize = 500;
const MAX_DESCRIPTION: usize = 600;
const MAX_COMMENT: usize = 2_000;

impl Email {
    pub(in crate::notifications::worker) fn about_task(
        mail: &TaskMail,
        all: &Texts,
    ) -> askama::Result<Self> {
        let texts = &all.task;
        let kind = kind_texts(mail, texts);
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

fn kind_texts<'a>(mail: &TaskMail, texts: &'a TaskTexts) -> &'a KindTexts {
    match mail.kind {
        MailKind::Asked => &texts.asked,
        MailKind::Reminder => &texts.reminder,
        MailKind::Due => &texts.due,
        MailKind::Decided if mail.is_approved => &texts.approved,
        MailKind::Decided => &texts.rejected,
        MailKind::Cancelled => &texts.cancelled,
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
    let button = |label, link: &'a values::Secret, is_main| Button {
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
