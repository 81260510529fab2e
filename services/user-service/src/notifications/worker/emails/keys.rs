//! Mails about API keys, which have no code.

use super::Email;
use super::foreign_text::one_line;
use super::layout::{Button, Content, Fact};
use super::texts::Texts;
use crate::notifications::Notice;
use crate::notifications::worker::notification::AboutKey;

const MAX_NAME: usize = 100;

impl Email {
    /// A mail about an API key.
    ///
    /// # Errors
    /// None in practice: the templates write to memory.
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
