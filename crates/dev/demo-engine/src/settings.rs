//! The settings, and the failures and delays that the engine simulates, which can be changed while it is running.

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Error, SettingValue};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use server::HttpServerSettings;
use values::Secret;

app_config::settings! {
    /// The settings of a demo engine. Without a token, erasure calls need none.
    pub struct Settings {
        /// The address that the demo engine listens on.
        pub listen_address: SocketAddr = or_default("LISTEN_ADDRESS", "127.0.0.1:8090"),
        /// The bearer token that the erasure calls must carry.
        pub token: Option<Secret> = optional("DEMO_ENGINE_TOKEN"),
        /// How the engine responds at first.
        pub control: Control = part(),
        /// How the engine serves HTTP.
        pub http: HttpServerSettings = part(),
    }

    /// How the engine responds.
    #[derive(Default, PartialEq, Eq)]
    pub struct Control {
        /// The pause before each erasure call is handled.
        pub delay: Duration = or_default("DEMO_ENGINE_DELAY", "300ms"),
        /// How many times each erasure call of each user fails first.
        pub fail: u32 = or_default("DEMO_ENGINE_FAIL", "0"),
        /// How long each erasure call of each user returns `202` before it is done.
        pub accepted: Duration = or_default("DEMO_ENGINE_ACCEPTED", "0s"),
        /// Whether all calls of the contract return `503` and are not recorded.
        pub down: bool = by(|_| Ok::<_, Error>(false)),
    }
}

impl Default for Settings {
    /// For tests: a free port, no token, no delay, no failures.
    fn default() -> Self {
        Self {
            listen_address: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            control: Control::default(),
            http: HttpServerSettings::single_threaded(),
        }
    }
}

/// A change of a [`Control`]. Fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ControlChange {
    /// See [`Control::delay`].
    #[serde(deserialize_with = "deserialize_duration")]
    pub delay: Option<Duration>,
    /// See [`Control::fail`]. Resets the count of failures of all calls and users.
    pub fail: Option<u32>,
    /// See [`Control::accepted`].
    #[serde(deserialize_with = "deserialize_duration")]
    pub accepted: Option<Duration>,
    /// See [`Control::down`].
    pub down: Option<bool>,
}

impl Control {
    /// As a response shows it. A [`ControlChange`] has the same fields.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "delay": format_duration(self.delay),
            "fail": self.fail,
            "accepted": format_duration(self.accepted),
            "down": self.down,
        })
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
