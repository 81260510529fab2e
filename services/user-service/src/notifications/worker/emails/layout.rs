//! The templates of all mails.

use askama::Template;

use super::Email;

/// A mail's content, as plain text and as HTML.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) subject: String,
    pub(super) heading: String,
    pub(super) paragraphs: Vec<&'a str>,
    /// A text of a person, shown as a quotation.
    pub(super) quote: String,
    pub(super) facts: Vec<Fact<'a>>,
    pub(super) buttons: Vec<Button<'a>>,
    /// A link in the HTML to be copied where buttons do not work.
    pub(super) copied: Option<Link<'a>>,
    pub(super) notes: Vec<String>,
    pub(super) footer: Option<Link<'a>>,
}

#[derive(Debug)]
pub(super) struct Fact<'a> {
    pub(super) label: &'a str,
    pub(super) value: String,
}

#[derive(Debug)]
pub(super) struct Button<'a> {
    pub(super) label: &'a str,
    /// The same in the plain text, before the link.
    pub(super) prompt: &'a str,
    pub(super) link: &'a str,
    pub(super) is_main: bool,
}

#[derive(Debug)]
pub(super) struct Link<'a> {
    pub(super) label: &'a str,
    pub(super) link: &'a str,
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
    pub(super) fn render(self, language: &str) -> askama::Result<Email> {
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
