//! Mails with a code.

use super::Email;
use super::layout::{Button, Content, Fact, Link};
use super::texts::Texts;
use crate::notifications::Kind;
use crate::notifications::worker::notification::Notification;

impl Email {
    /// A mail with a code.
    ///
    /// # Errors
    /// None in practice: the templates write to memory.
    pub(in crate::notifications::worker) fn with_code(
        notification: &Notification,
        texts: &Texts,
    ) -> askama::Result<Self> {
        let code = match notification.kind {
            Kind::ForgotPassword => &texts.forgot_password,
            Kind::VerifyEmail => &texts.verify_email,
        };
        let link = notification.link.expose();
        let validity = texts.validity(notification.lifetime);
        let content = Content {
            subject: code.subject.to_owned(),
            heading: code.subject.to_owned(),
            paragraphs: vec![code.reason],
            // The username may be one that the recipient does not know.
            facts: vec![Fact {
                label: texts.account,
                value: notification.email.clone(),
            }],
            buttons: vec![Button {
                label: code.button,
                prompt: code.prompt,
                link,
                is_main: true,
            }],
            copied: Some(Link {
                label: texts.copy_link,
                link,
            }),
            notes: vec![validity, code.otherwise.to_owned()],
            ..Content::default()
        };
        content.render(texts.language)
    }
}
