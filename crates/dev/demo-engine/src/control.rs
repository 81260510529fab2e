//! The failures and delays that the engine simulates. They can be changed while it is running.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration;

/// How the engine responds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Control {
    /// The pause before each erasure call is handled.
    #[serde(serialize_with = "duration::serialize")]
    pub delay: Duration,
    /// How many times each erasure call of each user returns `500` before it succeeds.
    pub fail: u32,
    /// How long each erasure call of each user returns `202` before it is done. Zero turns this off.
    #[serde(serialize_with = "duration::serialize")]
    pub accepted: Duration,
    /// Whether all calls of the contract return `503` and are not recorded.
    pub down: bool,
}

/// A change of a [`Control`]. Fields that are `None` stay as they are.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlChange {
    /// See [`Control::delay`].
    #[serde(default, deserialize_with = "duration::deserialize_some")]
    pub delay: Option<Duration>,
    /// See [`Control::fail`]. Resets the count of failures of all calls and users.
    #[serde(default)]
    pub fail: Option<u32>,
    /// See [`Control::accepted`].
    #[serde(default, deserialize_with = "duration::deserialize_some")]
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
