//! The page of an unsubscribe link.

use askama::Template;
use values::{Language, Names as _};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks whether reminders are to end. Mail scanners open links, so this must change nothing.
    Ask,
    Off,
    On,
}

#[derive(Template)]
#[template(path = "unsubscribe.html")]
struct Page<'a> {
    language: Language,
    step: Step,
    token: &'a str,
}

pub(super) fn render(language: Language, step: Step, token: &str) -> askama::Result<String> {
    let page = Page {
        language,
        step,
        token,
    };
    page.render()
}

#[cfg(test)]
mod tests {
    use values::Language;

    use super::{Step, render};

    #[test]
    fn every_page_posts_to_its_own_link() {
        for language in [Language::English, Language::German] {
            for (step, action) in [
                (Step::Ask, "action=\"?token=abc\""),
                (Step::Off, "action=\"?token=abc&#38;reminders=on\""),
                (Step::On, "action=\"?token=abc\""),
            ] {
                let page = render(language, step, "abc").unwrap();
                assert!(page.contains(action), "{page}");
                assert!(page.contains("method=\"post\""), "{page}");
            }
        }
    }
}
