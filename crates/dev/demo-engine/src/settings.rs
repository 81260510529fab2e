//! The settings, and the failures and delays that the engine simulates, which can be changed while it is running.

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Error, Reader, SettingValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use server::HttpServerSettings;
use values::Secret;

/// The settings of a demo engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on. Port 0 picks a free port.
    pub listen_address: SocketAddr,
    /// The bearer token that erasure calls must carry. `None` allows calls without one.
    pub token: Option<Secret>,
    /// How the engine responds at first.
    pub control: Control,
    /// How the engine serves HTTP.
    pub http: HttpServerSettings,
}

impl app_config::Settings for Settings {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        Ok(Self {
            listen_address: reader.or_default(
                "LISTEN_ADDRESS",
                "127.0.0.1:8090",
                "The address that the demo engine listens on.",
            )?,
            token: reader.optional(
                "DEMO_ENGINE_TOKEN",
                "The bearer token that the erasure calls must carry.",
            )?,
            control: Control {
                delay: reader.or_default(
                    "DEMO_ENGINE_DELAY",
                    "300ms",
                    "The pause before each erasure call is handled.",
                )?,
                fail: reader.or_default(
                    "DEMO_ENGINE_FAIL",
                    "0",
                    "How many times each erasure call of each user fails first.",
                )?,
                accepted: reader.or_default(
                    "DEMO_ENGINE_ACCEPTED",
                    "0s",
                    "How long each erasure call of each user returns `202` before it is done.",
                )?,
                down: false,
            },
            http: HttpServerSettings::read(reader)?,
        })
    }
}

impl Default for Settings {
    /// For tests: a free port, no token, no delay, no failures.
    fn default() -> Self {
        Self {
            listen_address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            control: Control::default(),
            http: HttpServerSettings::default(),
        }
    }
}

/// How the engine responds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Control {
    /// The pause before each erasure call is handled.
    #[serde(serialize_with = "serialize_duration")]
    pub delay: Duration,
    /// How many times each erasure call of each user returns `500` before it succeeds.
    pub fail: u32,
    /// How long each erasure call of each user returns `202` before it is done. Zero turns this off.
    #[serde(serialize_with = "serialize_duration")]
    pub accepted: Duration,
    /// Whether all calls of the contract return `503` and are not recorded.
    pub down: bool,
}

/// A change of a [`Control`]. Fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlChange {
    /// See [`Control::delay`].
    #[serde(default, deserialize_with = "deserialize_duration")]
    pub delay: Option<Duration>,
    /// See [`Control::fail`]. Resets the count of failures of all calls and users.
    #[serde(default)]
    pub fail: Option<u32>,
    /// See [`Control::accepted`].
    #[serde(default, deserialize_with = "deserialize_duration")]
    pub accepted: Option<Duration>,
    /// See [`Control::down`].
    #[serde(default)]
    pub down: Option<bool>,
}

impl Control {
    /// Applies the fields of `change` that are set.
    pub(crate) fn apply(&mut self, change: &ControlChange) {
        self.delay = change.delay.unwrap_or(self.delay);
        self.fail = change.fail.unwrap_or(self.fail);
        self.accepted = change.accepted.unwrap_or(self.accepted);
        self.down = change.down.unwrap_or(self.down);
    }
}

/// Formats whole seconds as `3s` and other durations in milliseconds.
fn format_duration(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

/// For `#[serde(serialize_with)]`.
fn serialize_duration<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}

/// For `#[serde(deserialize_with)]` on an optional field.
fn deserialize_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = Duration::parse(&text).map_err(serde::de::Error::custom)?;
    Ok(Some(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_duration_can_be_parsed() {
        for millis in [0, 1, 300, 1_000, 1_500, 60_000] {
            let duration = Duration::from_millis(millis);
            assert_eq!(Duration::parse(&format_duration(duration)), Ok(duration));
        }
    }
}
