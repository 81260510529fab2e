//! Mails about a user's account: with a code, or about an API key.

use super::Email;
use super::foreign_text::one_line;
use super::layout::{Button, Content, Fact, Link};
use super::texts::Texts;
use crate::notifications::worker::notification::{AboutKey, Code};
use crate::notifications::{Kind, Notice};

const MAX_NAME: usize = 100;

impl Email {
    pub(in crate::notifications::worker) fn with_code(
        code: &Code,
        address: &str,
        all: &Texts,
    ) -> askama::Result<Self> {
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

    pub(in crate::notifications::worker) fn about_key(
        key: &AboutKey,
        all: &Texts,
    ) -> askama::Result<Self> {
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
}
