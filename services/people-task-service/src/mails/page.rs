//! The page of an unsubscribe link.

use askama::Template;
use values::{Language, Names as _};

/// What the page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks whether reminders are to end. Mail scanners open links, so this must change nothing.
    Ask,
    /// Reminders have ended.
    Off,
    /// Reminders are sent again.
    On,
}

#[derive(Template)]
#[template(path = "unsubscribe.html")]
struct Page<'a> {
    language: &'a str,
    texts: &'a Texts,
    /// The path and query to which the button posts.
    action: String,
    button: &'a str,
    message: &'a str,
}

/// The texts of a language.
struct Texts {
    title: &'static str,
    ask: &'static str,
    off: &'static str,
    on: &'static str,
    turn_off: &'static str,
    turn_on: &'static str,
}

const ENGLISH: Texts = Texts {
    title: "Reminders",
    ask: "Do you want no more reminders of tasks that wait for your decision? You will still be asked about new ones.",
    off: "You will get no more reminders. You will still be asked about new tasks.",
    on: "You will be reminded of tasks that wait for your decision.",
    turn_off: "Turn reminders off",
    turn_on: "Turn reminders on",
};

const GERMAN: Texts = Texts {
    title: "Erinnerungen",
    ask: "Möchten Sie nicht mehr an Aufgaben erinnert werden, die auf Ihre Entscheidung warten? Nach neuen werden Sie weiterhin gefragt.",
    off: "Sie werden nicht mehr erinnert. Nach neuen Aufgaben werden Sie weiterhin gefragt.",
    on: "Sie werden an Aufgaben erinnert, die auf Ihre Entscheidung warten.",
    turn_off: "Erinnerungen abschalten",
    turn_on: "Erinnerungen einschalten",
};

/// The page in HTML.
pub(super) fn render(language: Language, step: Step, token: &str) -> askama::Result<String> {
    let texts = match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
    };
    let (message, button, reminders) = match step {
        Step::Ask => (texts.ask, texts.turn_off, ""),
        Step::Off => (texts.off, texts.turn_on, "&reminders=on"),
        Step::On => (texts.on, texts.turn_off, ""),
    };
    let page = Page {
        language: language.name(),
        texts,
        action: format!("?token={token}{reminders}"),
        button,
        message,
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
