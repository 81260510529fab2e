//! Colours, when the output is a terminal.

use std::env;
use std::io::{IsTerminal, stdout};
use std::sync::LazyLock;

static COLOURED: LazyLock<bool> = LazyLock::new(|| {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    !set("NO_COLOR") && (stdout().is_terminal() || set("CLICOLOR_FORCE"))
});

/// Colours of the processes. Red is for errors.
const PREFIXES: [u8; 6] = [36, 33, 35, 32, 34, 96];

fn coloured(code: &str, text: &str) -> String {
    if *COLOURED {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// Red, for errors.
pub fn red(text: &str) -> String {
    coloured("1;31", text)
}

/// Green, for success.
pub fn green(text: &str) -> String {
    coloured("32", text)
}

/// Yellow, for what a person should notice.
pub fn yellow(text: &str) -> String {
    coloured("33", text)
}

/// Cyan, for addresses and values.
pub fn cyan(text: &str) -> String {
    coloured("36", text)
}

/// Bold, for headings.
pub fn bold(text: &str) -> String {
    coloured("1", text)
}

/// Dimmed, for what can be skipped.
pub fn dim(text: &str) -> String {
    coloured("2", text)
}

/// Colours the prefix of the process at this position in the list.
pub fn prefix(position: usize, text: &str) -> String {
    let code = PREFIXES.get(position % PREFIXES.len()).unwrap_or(&0);
    coloured(&code.to_string(), text)
}
