//! Colours, when a person looks on.

use std::{
    env,
    io::{IsTerminal, stdout},
    sync::LazyLock,
};

static COLOURED: LazyLock<bool> = LazyLock::new(|| {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    !set("NO_COLOR") && (stdout().is_terminal() || set("CLICOLOR_FORCE"))
});

/// Colours that differ from each other and from red, which is kept for trouble.
const PREFIXES: [u8; 6] = [36, 33, 35, 32, 34, 96];

fn painted(code: &str, text: &str) -> String {
    if *COLOURED {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Red, for errors.
pub fn red(text: &str) -> String {
    painted("1;31", text)
}

pub(crate) fn green(text: &str) -> String {
    painted("32", text)
}

pub(crate) fn yellow(text: &str) -> String {
    painted("33", text)
}

pub(crate) fn cyan(text: &str) -> String {
    painted("36", text)
}

/// Bold, for headings.
pub fn bold(text: &str) -> String {
    painted("1", text)
}

pub(crate) fn dim(text: &str) -> String {
    painted("2", text)
}

/// The colour of the process at a place in the list.
pub(crate) fn prefix(place: usize, text: &str) -> String {
    let code = PREFIXES.get(place % PREFIXES.len()).copied().unwrap_or(0);
    painted(&code.to_string(), text)
}
