use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

app_config::settings! {
    /// API keys.
    #[derive(Copy)]
    pub struct KeySettings {
        /// The API keys that a user can have.
        pub per_user: usize = in_range("KEYS_PER_USER", "50", "a whole number from 1 to 1000", |keys| (1..=1_000).contains(keys)),
        /// How long before an API key expires its user is mailed, but not in the first half of its life.
        pub notice: Duration = in_range("KEY_EXPIRY_NOTICE", "7d", "a duration from 1m to 365d", |notice| {
            (Duration::from_secs(60)..=DAY * 365).contains(notice)
        }),
    }
}
