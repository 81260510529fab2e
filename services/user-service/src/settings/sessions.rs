use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MIN_LIFETIME: Duration = Duration::from_secs(60);
const LIFETIMES: &str = "a duration from 1m to 365d";

app_config::settings! {
    /// How long browsers stay signed in, and how many of one user.
    #[derive(Copy)]
    pub struct SessionSettings {
        /// How long a browser stays signed in after its last use, if its user chose to stay signed in.
        pub unused: Duration = in_range("SESSION_IDLE_TTL", "30d", LIFETIMES, is_lifetime),
        /// How long a browser stays signed in after the sign-in, however often it is used.
        pub longest: Duration = in_range("SESSION_TTL", "180d", LIFETIMES, is_lifetime),
        /// The browsers in which a user can stay signed in. Another one signs out the one that was not used for longest.
        pub per_user: usize = in_range("SESSIONS_PER_USER", "20", "a whole number from 1 to 1000", |sessions| {
            (1..=1_000).contains(sessions)
        }),
    }
}

fn is_lifetime(lifetime: &Duration) -> bool {
    (MIN_LIFETIME..=DAY * 365).contains(lifetime)
}
