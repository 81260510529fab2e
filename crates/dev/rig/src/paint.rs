//! Colours, which [`crate::stdout`] leaves out unless the output is a terminal.

/// Colours of the processes. Red is for errors.
const PREFIXES: [u8; 6] = [36, 33, 35, 32, 34, 96];

fn coloured(code: &str, text: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// Functions that colour a text, each with the code of its colour.
macro_rules! colours {
    ($($(#[$doc:meta])* $name:ident $code:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(text: &str) -> String {
            coloured($code, text)
        }
    )*};
}

colours! {
    /// Red, for errors.
    red "1;31";
    /// Green, for success.
    green "32";
    /// Yellow, for what a person should notice.
    yellow "33";
    /// Cyan, for addresses and values.
    cyan "36";
    /// Bold, for headings.
    bold "1";
    /// Dimmed, for what can be skipped.
    dim "2";
}

/// Colours the prefix of the process at this position in the list.
pub fn prefix(position: usize, text: &str) -> String {
    let code = PREFIXES.get(position % PREFIXES.len()).unwrap_or(&0);
    coloured(&code.to_string(), text)
}
