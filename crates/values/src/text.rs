use crate::{FromText, Invalid};

/// Checks that a text has `min` to `max` characters and no NUL character, which Postgres cannot store.
///
/// # Errors
/// `nul-character`, `too-short` or `too-long`.
pub fn bounded_text(text: &str, min: usize, max: usize) -> Result<&str, Invalid> {
    if text.contains('\0') {
        return Err(Invalid::new(
            "nul-character",
            "Must not contain the character NUL (U+0000).",
        ));
    }
    let characters = text.chars().count();
    if characters < min {
        let message = format!("Must have at least {min} characters.");
        return Err(Invalid::new("too-short", message));
    }
    if characters > max {
        let message = format!("Must have at most {max} characters.");
        return Err(Invalid::new("too-long", message));
    }
    Ok(text)
}

impl FromText for String {
    /// Any text without NUL characters, which Postgres cannot store.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        bounded_text(text, 0, usize::MAX).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::bounded_text;

    #[test]
    fn the_length_is_in_characters() {
        assert!(bounded_text("ééé", 3, 3).is_ok());
        assert_eq!(bounded_text("éééé", 1, 3).unwrap_err().code, "too-long");
        assert_eq!(bounded_text("é", 2, 3).unwrap_err().code, "too-short");
    }

    #[test]
    fn nul_is_invalid() {
        assert_eq!(
            bounded_text("a\0b", 0, 9).unwrap_err().code,
            "nul-character"
        );
    }
}
