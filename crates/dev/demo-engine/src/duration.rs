//! Durations in JSON, in the form of settings: `500ms`, `30s`.

use std::time::Duration;

use app_config::SettingValue;
use serde::{Deserialize, Deserializer, Serializer};

/// Formats whole seconds as `3s` and other durations in milliseconds.
pub(crate) fn format(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{}ms", duration.as_millis())
    }
}

/// For `#[serde(serialize_with)]`.
pub(crate) fn serialize<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For `#[serde(deserialize_with)]` on an optional field.
pub(crate) fn deserialize_some<'de, D: Deserializer<'de>>(
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
            assert_eq!(Duration::parse(&format(duration)), Ok(duration));
        }
    }
}
