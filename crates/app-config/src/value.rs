use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use url::Url;
use values::{EmailAddress, FromText, Language, Secret, UserId};

/// A type that a setting can have.
pub trait SettingValue: Sized {
    /// The allowed values, to complete "Set it to …".
    const ALLOWED: &'static str;
    /// A value that parses, for describing settings without having them.
    const EXAMPLE: &'static str;
    /// Whether the value must never be shown. A secret may come from a file.
    const SECRET: bool = false;

    /// Parses the text of one setting.
    ///
    /// # Errors
    /// What is wrong with it, without the text itself.
    fn parse(text: &str) -> Result<Self, String>;
}

macro_rules! from_str_values {
    ($($type:ty, $allowed:literal, $example:literal;)+) => {$(
        impl SettingValue for $type {
            const ALLOWED: &'static str = $allowed;
            const EXAMPLE: &'static str = $example;

            fn parse(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|error| format!("{error}"))
            }
        }
    )+};
}

from_str_values! {
    String, "text", "text";
    bool, "`true` or `false`", "true";
    u16, "a whole number from 0 to 65535", "1";
    u32, "a whole number", "1";
    u64, "a whole number", "1";
    usize, "a whole number", "1";
    f64, "a number", "1";
    SocketAddr, "an address and a port such as 127.0.0.1:8080", "127.0.0.1:8080";
}

impl SettingValue for Duration {
    const ALLOWED: &'static str = "a duration such as `500ms`, `30s`, `5m`, `24h` or `30d`";
    const EXAMPLE: &'static str = "30s";

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let number: u64 = number
            .parse()
            .map_err(|_| "it does not start with a whole number".to_owned())?;
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "" => return Err("its unit is missing".to_owned()),
            _ => return Err("its unit is unknown".to_owned()),
        };
        number
            .checked_mul(milliseconds)
            .map(Self::from_millis)
            .ok_or_else(|| "it is too long".to_owned())
    }
}

impl SettingValue for Url {
    const ALLOWED: &'static str = "a URL that starts with http:// or https://";
    const EXAMPLE: &'static str = "http://127.0.0.1:8080";

    fn parse(text: &str) -> Result<Self, String> {
        let url = Self::parse(text.trim()).map_err(|error| error.to_string())?;
        if matches!(url.scheme(), "http" | "https") && url.has_host() {
            Ok(url)
        } else {
            Err("it is not an http or https URL".to_owned())
        }
    }
}

impl SettingValue for Secret {
    const ALLOWED: &'static str = "a secret";
    const EXAMPLE: &'static str = "secret";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::new(text))
    }
}

impl SettingValue for EmailAddress {
    const ALLOWED: &'static str = "an e-mail address";
    const EXAMPLE: &'static str = "ada@example.com";

    fn parse(text: &str) -> Result<Self, String> {
        Self::from_text(text).map_err(|_| "it is not an e-mail address".to_owned())
    }
}

/// Implements [`SettingValue`] for enums whose values have [`Names`](values::Names).
#[macro_export]
macro_rules! named_settings {
    ($($type:ty, $allowed:literal, $example:literal;)+) => {$(
        impl $crate::SettingValue for $type {
            const ALLOWED: &'static str = $allowed;
            const EXAMPLE: &'static str = $example;

            fn parse(text: &str) -> Result<Self, String> {
                let value = <Self as values::Names>::from_name(text.trim());
                value.ok_or_else(|| "it is another value".to_owned())
            }
        }
    )+};
}

values::names! {
    /// Whether a process does something.
    pub enum Switch {
        /// It does.
        On = "on",
        /// It does not.
        Off = "off",
    }
}

named_settings! {
    Language, "`en` or `de`", "en";
    Switch, "`on` or `off`", "on";
}

/// Values separated by commas. Empty ones are dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv<T>(pub Vec<T>);

/// Parses values separated by commas. Empty ones are dropped, but a text of nothing else, such as `,`, is a mistake:
/// an operator who wrote it must not get what an unset variable means. Only an empty text is an empty list.
///
/// # Errors
/// A value is invalid, or there is none.
pub fn parse_list<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let parts = text.split(',').map(str::trim);
    let values: Vec<_> = parts
        .filter(|part| !part.is_empty())
        .map(parse)
        .collect::<Result<_, _>>()?;
    if values.is_empty() && !text.is_empty() {
        return Err("the list has no entry".to_owned());
    }
    Ok(values)
}

/// The same, where `none` is the empty list. An empty text means the default.
fn parse_list_or_none<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    if text.trim() == "none" {
        return Ok(Vec::new());
    }
    parse_list(text, parse)
}

impl SettingValue for Csv<String> {
    const ALLOWED: &'static str = "text values separated by commas";
    const EXAMPLE: &'static str = "one,two";

    fn parse(text: &str) -> Result<Self, String> {
        parse_list(text, |part| Ok(part.to_owned())).map(Self)
    }
}

impl SettingValue for Csv<Duration> {
    const ALLOWED: &'static str =
        "durations separated by commas such as `5s,30s,2m`, or `none` for an empty list";
    const EXAMPLE: &'static str = "5s,30s";

    fn parse(text: &str) -> Result<Self, String> {
        parse_list_or_none(text, <Duration as SettingValue>::parse).map(Self)
    }
}

impl SettingValue for Csv<UserId> {
    const ALLOWED: &'static str =
        "identifiers of users separated by commas, or `none` for an empty list";
    const EXAMPLE: &'static str = "665f1c2ab3d4e5f60718293a";

    fn parse(text: &str) -> Result<Self, String> {
        let parse =
            |part: &str| UserId::from_text(part).map_err(|_| "it is no identifier".to_owned());
        parse_list_or_none(text, parse).map(Self)
    }
}

/// Networks in CIDR form. An address alone is a network of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<IpNet>);

impl Networks {
    /// Whether one of the networks holds the address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

impl SettingValue for Networks {
    const ALLOWED: &'static str =
        "addresses and networks in CIDR form separated by commas such as `10.0.0.0/8,::1`";
    const EXAMPLE: &'static str = "10.0.0.0/8";

    fn parse(text: &str) -> Result<Self, String> {
        parse_list(text, parse_network).map(Self)
    }
}

fn parse_network(text: &str) -> Result<IpNet, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}
