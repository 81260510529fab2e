//! The output of the commands.

use crate::paint;

/// Prints a line. Unlike `println!` it does not panic when standard output is closed, as in
/// `cargo xtask up | head`: a command that stops halfway would leave servers running.
#[macro_export]
macro_rules! outln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}

/// Prints a line to standard error, without panicking when it is closed.
#[macro_export]
macro_rules! errln {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

/// Prints what the command is doing.
pub fn say(text: &str) {
    outln!("{} {text}", paint::dim("==>"));
}
