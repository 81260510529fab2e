use std::fmt;

use app_config::{SettingValue, Switch};

/// The longest name in characters: more do not fit beside the menu on a phone.
const MAX_NAME: usize = 40;

/// The name in the header and in the titles of the pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesName(pub(crate) String);

impl SettingValue for PagesName {
    const ALLOWED: &'static str = "a text of 1 to 40 characters in one line";
    const EXAMPLE: &'static str = "Countersign";

    fn parse(text: &str) -> Result<Self, String> {
        let name = text.trim();
        match name.chars().count() {
            0 => Err("it is empty".to_owned()),
            length if length > MAX_NAME => Err(format!("it has {length} characters")),
            _ if name.contains(char::is_control) => Err("it has a control character".to_owned()),
            _ if !values::is_visible(name) => {
                Err("it has no character that can be seen".to_owned())
            }
            _ => Ok(Self(name.to_owned())),
        }
    }
}

/// A colour as red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HexColor(pub(crate) [u8; 3]);

impl SettingValue for HexColor {
    const ALLOWED: &'static str = "a colour such as `#1f5fd1` or `#06c`";
    const EXAMPLE: &'static str = "#1f5fd1";

    fn parse(text: &str) -> Result<Self, String> {
        let digits = text.trim().strip_prefix('#');
        let digits = digits.ok_or("it does not start with `#`")?;
        let digit = |digit: char| {
            let value = digit
                .to_digit(16)
                .and_then(|value| u8::try_from(value).ok());
            value.ok_or_else(|| format!("{digit:?} is not a hexadecimal digit"))
        };
        let digits: Vec<u8> = digits.chars().map(digit).collect::<Result<_, _>>()?;
        match digits.as_slice() {
            [r, g, b] => Ok(Self([r * 17, g * 17, b * 17])),
            [r, r2, g, g2, b, b2] => Ok(Self([r * 16 + r2, g * 16 + g2, b * 16 + b2])),
            _ => Err(format!("it has {} digits", digits.len())),
        }
    }
}

impl fmt::Display for HexColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([red, green, blue]) = self;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

app_config::settings! {
    /// The web pages, and how they look.
    pub struct PagesSettings {
        /// Whether the gateway serves web pages. With `off` their paths are unknown; `/openapi.json` stays. Links in messages then need
        /// pages of your own: `PEOPLE_TASKS_DASHBOARD_URL`, `FORGOT_PASSWORD_URL` and `VERIFY_EMAIL_URL`.
        pub mode: Switch = or_default("PAGES", "on"),
        /// The name in the header and in the titles of the web pages.
        pub name: PagesName = or_default("PAGES_NAME", "Countersign"),
        /// The file with the logo of the web pages: SVG or PNG, at most 64 KiB. It is shown 26 pixels high, and is the icon of their tabs,
        /// too.
        pub logo: Option<String> = optional("PAGES_LOGO"),
        /// The colour of buttons. The text on them is black or white, and links are darker or lighter, so that both are readable.
        pub color: HexColor = or_default("PAGES_COLOR", "#1f5fd1"),
    }
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::{HexColor, PagesName};

    #[test]
    fn colours_have_three_or_six_digits() {
        for (text, expected) in [
            ("#1f5fd1", "#1f5fd1"),
            ("#FFD400", "#ffd400"),
            (" #06c ", "#0066cc"),
        ] {
            assert_eq!(HexColor::parse(text).unwrap().to_string(), expected);
        }
        for (text, reason) in [
            ("blue", "it does not start with `#`"),
            ("1f5fd1", "it does not start with `#`"),
            ("#1f5fd", "it has 5 digits"),
            ("#1f5fd1ff", "it has 8 digits"),
            ("#12345g", "'g' is not a hexadecimal digit"),
            ("#", "it has 0 digits"),
        ] {
            assert_eq!(HexColor::parse(text).unwrap_err(), reason, "{text}");
        }
    }

    #[test]
    fn names_fit_into_the_header() {
        assert_eq!(
            PagesName::parse(" Müller & Söhne ").unwrap().0,
            "Müller & Söhne"
        );
        for text in ["  ", "two\nlines", &"x".repeat(41)] {
            assert!(PagesName::parse(text).is_err(), "{text}");
        }
    }
}
