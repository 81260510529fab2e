use std::time::Duration;

use app_config::{Reader, Settings};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MIN_LIFETIME: Duration = Duration::from_secs(60);

/// How long browsers stay signed in, and how many of one user.
#[derive(Debug, Clone, Copy)]
pub struct SessionSettings {
    /// From the last use on.
    pub unused: Duration,
    /// From the sign-in on.
    pub longest: Duration,
    /// The sessions of one user.
    pub per_user: usize,
}

impl Settings for SessionSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let allowed = "a duration from 1m to 365d";
        let accepts = |lifetime: &Duration| (MIN_LIFETIME..=DAY * 365).contains(lifetime);
        Ok(Self {
            unused: reader.in_range(
                "SESSION_IDLE_TTL",
                "30d",
                allowed,
                "How long a browser stays signed in after its last use, if its user chose to stay signed in.",
                accepts,
            )?,
            longest: reader.in_range(
                "SESSION_TTL",
                "180d",
                allowed,
                "How long a browser stays signed in after the sign-in, however often it is used.",
                accepts,
            )?,
            per_user: reader.in_range(
                "SESSIONS_PER_USER",
                "20",
                "a whole number from 1 to 1000",
                "The browsers in which a user can stay signed in. Another one signs out the one that was not used for longest.",
                |sessions| (1..=1_000).contains(sessions),
            )?,
        })
    }
}
