//! Colours, which [`crate::stdout`] leaves out unless the output is a terminal.

use anstyle::AnsiColor;
pub use anstyle::Style;

/// For errors.
pub const RED: Style = AnsiColor::Red.on_default().bold();
/// For success.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// For what a person should notice.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// For addresses and values.
pub const CYAN: Style = AnsiColor::Cyan.on_default();
/// For headings.
pub const BOLD: Style = Style::new().bold();
/// For what can be skipped.
pub const DIM: Style = Style::new().dimmed();

/// Colours of the processes. Red is for errors.
pub(crate) const PREFIXES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::BrightCyan,
];
