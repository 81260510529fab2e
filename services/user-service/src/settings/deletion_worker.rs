use std::time::Duration;

use app_config::SettingValue;
use database::DatabaseSettings;
use messaging::BrokerSettings;
use reqwest::header::HeaderValue;
use url::Url;
use values::Secret;

app_config::settings! {
    /// Settings of the deletion worker.
    pub struct DeletionWorkerSettings {
        pub(crate) database: DatabaseSettings = part(),
        pub(crate) broker: BrokerSettings = part(),
        /// The URL of the flow engine, which deletes its own data about a user. If not set, deletions skip these steps. Set it
        /// for the user-service and the deletion-worker, or for neither.
        pub(crate) engine: Option<Url> = optional("FLOW_ENGINE_URL"),
        /// The bearer token for the flow engine.
        pub(crate) engine_token: Option<EngineToken> = optional("FLOW_ENGINE_TOKEN"),
        pub(crate) people_task_service: Url = required("PEOPLE_TASK_SERVICE_URL", "the URL of the people-task service."),
        /// The key of access tokens in PEM form, with which the worker authenticates at the people-task service.
        pub(crate) signing_key: Secret = by(|reader| auth::read_signing_key(
            reader,
            "TOKEN_SIGNING_KEY",
            "the key that signs tokens.",
        )),
        pub(crate) issuer: String = by(auth::read_issuer),
        /// Attempts of one step of a deletion without any progress before the deletion fails. The default is about 30 hours.
        // More than a day: the first nine pauses are 8 minutes together, the others 5 minutes each.
        pub(crate) max_attempts: u32 = between("DELETE_MAX_ATTEMPTS", "360", "1", "10000"),
        /// How long a deletion may be in progress, which includes the time in which no worker runs. Then it fails unless it
        /// makes progress, such as when the flow engine never finishes a step.
        pub(crate) max_age: Duration = between("DELETE_MAX_AGE", "7d", "1s", "365d"),
        /// The pause after the first failed attempt of a step. It doubles with every failure, up to 5 minutes.
        pub(crate) retry_pause: Duration = between("DELETE_RETRY_PAUSE", "1s", "1ms", "5m"),
        /// The minimum age of a deletion before people tasks are deleted. For about a second the revoked token may still
        /// create tasks.
        pub(crate) settle_time: Duration = or_default("DELETE_SETTLE_TIME", "2s"),
        /// How long a claim on a deletion lasts unless the worker renews it. Then another worker may claim the deletion.
        pub(crate) lease: Duration = in_range(
            "DELETE_LEASE",
            "15s",
            "a duration from 1s to 1h; below 15s two workers may run the same step at once",
            |lease| (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(lease)
        ),
        /// How long the ticket of a deletion is valid after the deletion has ended.
        pub(crate) ticket_retention: Duration = or_default("DELETE_TICKET_RETENTION", "30d"),
    }
}

/// A secret that fits into a header.
#[derive(Debug, Clone)]
pub(crate) struct EngineToken(pub(crate) Secret);

impl SettingValue for EngineToken {
    const ALLOWED: &'static str = "a secret in one line";
    const EXAMPLE: &'static str = "secret";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        match HeaderValue::try_from(text) {
            Ok(_) => Ok(Self(Secret::new(text))),
            Err(_) => Err("it has a character that no header has, such as a new line".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use app_config::SettingValue as _;

    use super::EngineToken;

    #[test]
    fn a_token_that_fits_into_no_header_is_refused_and_not_shown() {
        assert_eq!(EngineToken::parse("a b~é").unwrap().0.expose(), "a b~é");
        for text in ["hidden\n", "hid\r\nden", "hid\u{7f}den"] {
            let reason = EngineToken::parse(text).unwrap_err();
            assert!(reason.starts_with("it has a character"), "{reason}");
        }
    }
}
