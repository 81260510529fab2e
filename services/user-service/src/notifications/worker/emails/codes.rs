//! Mails with a code.

use super::Email;
use super::layout::{Button, Content, Fact, Link};
use super::texts::Texts;
use crate::notifications::Kind;
use crate::notifications::worker::notification::Code;

impl Email {
    /// A mail with a code.
    ///
    /// # Errors
    /// None in practice: the templates write to memory.
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
}
