//! The texts of e-mails: one layout for all of them, as plain text and as HTML, and the texts of each language.
//!
//! In the plain text each link has its own line, so that mail programs detect where it ends. The HTML loads nothing, so
//! that opening the message cannot be tracked.

mod accounts;
mod foreign_text;
mod layout;
mod tasks;
mod texts;

#[cfg(test)]
mod tests;

pub(super) use texts::AllTexts;

/// An e-mail's subject and its two bodies, with CRLF line ends.
pub(super) struct Email {
    pub(super) subject: String,
    pub(super) plain: String,
    pub(super) html: String,
}
