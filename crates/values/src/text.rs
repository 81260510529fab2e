use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory, GeneralCategoryGroup};
use icu_properties::{CodePointMapData, CodePointSetData};

use crate::{FromText, Invalid};

/// What shows nothing by itself: marks need a base, and the others are spaces or have no shape.
const UNSEEN: GeneralCategoryGroup = GeneralCategoryGroup::Mark
    .union(GeneralCategoryGroup::Separator)
    .union(GeneralCategoryGroup::Control)
    .union(GeneralCategoryGroup::Format);
/// Letters and symbols whose shape is empty, which no property of Unicode says: blank signs of hieroglyphs, of braille and of
/// music, and the placeholder of an object that is missing.
const BLANK: [char; 5] = [
    '\u{2800}',
    '\u{fffc}',
    '\u{13441}',
    '\u{13442}',
    '\u{1d159}',
];

/// Declares types of texts that callers write. Each has an expression that checks what was written, and says what is kept.
///
/// ```
/// use values::FromText as _;
///
/// values::texts! {
///     /// A word of at most five characters.
///     struct Word = |text| values::bounded_text(text.trim(), 1, 5);
/// }
///
/// assert_eq!(Word::from_text(" five ").unwrap().as_str(), "five");
/// assert_eq!(Word::from_text("hundred").unwrap_err().code, "too-long");
/// ```
#[macro_export]
macro_rules! texts {
    ($($(#[$attribute:meta])* $visibility:vis struct $name:ident = |$text:ident| $check:expr;)+) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $visibility struct $name(String);

        impl $name {
            $visibility fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl $crate::FromText for $name {
            fn from_text($text: &str) -> Result<Self, $crate::Invalid> {
                $check.map(|kept| Self(kept.into()))
            }
        }
    )+};
}

/// Checks that a text has `min` to `max` characters and no NUL character, which Postgres cannot store.
///
/// # Errors
/// `nul-character`, `too-short` or `too-long`.
pub fn bounded_text(text: &str, min: usize, max: usize) -> Result<&str, Invalid> {
    if text.contains('\0') {
        let message = "Must not contain the character NUL (U+0000).";
        return Err(Invalid::new("nul-character", message));
    }
    let characters = text.chars().count();
    if characters < min {
        let message = format!("Must have at least {}.", number_of_characters(min));
        return Err(Invalid::new("too-short", message));
    }
    if characters > max {
        let message = format!("Must have at most {}.", number_of_characters(max));
        return Err(Invalid::new("too-long", message));
    }
    Ok(text)
}

fn number_of_characters(number: usize) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} character{ending}")
}

/// Checks a text that people must be able to see, like [`bounded_text`].
///
/// # Errors
/// `nul-character`, `too-short`, `too-long`, or `invisible`.
pub fn visible_text(text: &str, min: usize, max: usize) -> Result<&str, Invalid> {
    let text = bounded_text(text, min, max)?;
    if is_visible(text) {
        return Ok(text);
    }
    let message = "Must have at least one character that can be seen.";
    Err(Invalid::new("invisible", message))
}

/// Whether a text has a character that can be seen. Spaces, controls, joiners, fillers, variation selectors, tags and
/// marks without a base cannot. Characters of private use, and those of a later version of Unicode, can.
pub fn is_visible(text: &str) -> bool {
    text.chars().any(|c| {
        c.is_ascii_graphic()
            || !(c.is_ascii()
                || BLANK.contains(&c)
                || UNSEEN.contains(CodePointMapData::<GeneralCategory>::new().get(c))
                || CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c))
    })
}

impl FromText for String {
    /// Any text without NUL characters, which Postgres cannot store.
    fn from_text(text: &str) -> Result<Self, Invalid> {
        bounded_text(text, 0, usize::MAX).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::{bounded_text, is_visible, visible_text};

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

    #[test]
    fn a_text_of_characters_without_a_shape_cannot_be_seen() {
        let alone = "\t \u{7f}\u{85}\u{a0}\u{ad}\u{34f}\u{301}\u{483}\u{61c}\u{93e}\u{115f}\u{1160}\u{1680}\u{17b4}\u{17b5}\
            \u{180b}\u{180e}\u{2000}\u{200a}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{202f}\
            \u{205f}\u{2060}\u{2061}\u{2062}\u{2063}\u{2064}\u{2065}\u{2066}\u{2069}\u{206a}\u{206f}\u{20e3}\u{2800}\u{3000}\
            \u{3164}\u{fe00}\u{fe0f}\u{feff}\u{ffa0}\u{fff0}\u{fff9}\u{fffb}\u{fffc}\u{13441}\u{13442}\u{1bca0}\u{1bca3}\u{1d159}\
            \u{1d173}\u{1d17a}\u{e0001}\u{e0020}\u{e007f}\u{e0100}\u{e01ef}\u{e0fff}";
        for unseen in alone.chars() {
            assert!(
                !is_visible(&unseen.to_string()),
                "U+{:04X}",
                u32::from(unseen)
            );
        }
        assert!(!is_visible(alone) && !is_visible(""));
        assert_eq!(
            visible_text("\u{200b}", 1, 9).unwrap_err().code,
            "invisible"
        );
    }

    #[test]
    fn letters_digits_punctuation_symbols_and_emoji_can_be_seen() {
        for text in [
            "a",
            "0",
            ".",
            "-",
            "$",
            "ä",
            "ß",
            "Ж",
            "م",
            "ह",
            "字",
            "한",
            "ㅎ",
            "´",
            "…",
            "№",
            "⠁",
            "␠",
            "😀",
            "👩\u{200d}💻",
            "❤\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "🏴\u{e0067}\u{e007f}",
            "🇩🇪",
            "e\u{301}",
            "\u{200b}x",
            "\u{e000}",
            "\u{fffd}",
            "نامه\u{200c}ها",
        ] {
            assert_eq!(visible_text(text, 1, 9), Ok(text), "{text}");
        }
    }
}
