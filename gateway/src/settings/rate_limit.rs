use app_config::{Networks, Reader, Settings, Switch};

values::names! {
    /// Whose requests count together towards `RATE_LIMIT_PER_SECOND`.
    pub enum LimitBy {
        /// Those of a client address.
        Address = "address",
        /// Those of an API key; without one, those of a client address.
        Key = "key",
    }
}

app_config::named_settings! {
    LimitBy, "`address` or `key`", "address";
}

impl LimitBy {
    /// Reads `RATE_LIMIT_BY`.
    ///
    /// # Errors
    /// The setting is invalid.
    pub(super) fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        reader.or_default(
            "RATE_LIMIT_BY",
            "address",
            "Whose requests `RATE_LIMIT_PER_SECOND` counts together: those of a client address, or with `key` those of an API key, such as where many flows of one engine have keys of their own. Requests without a key always count by address.",
        )
    }
}

/// How many requests one client address may send.
#[derive(Debug, Clone)]
pub struct RateLimitSettings {
    /// Whether there are limits at all.
    pub mode: Switch,
    /// Requests per second to all routes but those of `credentials_per_minute`; the burst is twice as many.
    pub requests_per_second: u32,
    /// Requests per minute to the routes that check or set passwords and codes, together.
    pub credentials_per_minute: u32,
    /// How many of those may be sent at once.
    pub credentials_burst: u32,
    /// Clients that are limited only in the routes of `credentials_per_minute`.
    pub exempt: Networks,
}

impl Settings for RateLimitSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let positive = "a whole number from 1 to 1000000";
        let accepts = |number: &u32| (1..=1_000_000).contains(number);
        Ok(Self {
            mode: reader.or_default(
                "RATE_LIMIT",
                "on",
                "Whether requests are limited by client address.",
            )?,
            requests_per_second: reader.in_range(
                "RATE_LIMIT_PER_SECOND",
                "5000",
                positive,
                "Requests per second that one client address may send; a burst may have twice as many.",
                accepts,
            )?,
            credentials_per_minute: reader.in_range(
                "RATE_LIMIT_CREDENTIALS_PER_MINUTE",
                "60",
                positive,
                "Sign-ins, sign-ups, password changes, and calls that send or take codes, per minute from one client address.",
                accepts,
            )?,
            credentials_burst: reader.in_range(
                "RATE_LIMIT_CREDENTIALS_BURST",
                "20",
                positive,
                "How many of those calls one client address may make at once.",
                accepts,
            )?,
            exempt: reader.or_default(
                "RATE_LIMIT_EXEMPT",
                "",
                "Networks that `RATE_LIMIT_PER_SECOND` does not limit and whose requests do not wait for each other while other clients send some, such as that of the flow engine.",
            )?,
        })
    }
}
