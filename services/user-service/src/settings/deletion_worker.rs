use std::time::Duration;

use app_config::{Reader, Settings};
use database::DatabaseSettings;
use messaging::BrokerSettings;
use url::Url;
use values::Secret;

/// Settings of the deletion worker.
#[derive(Debug, Clone)]
pub struct DeletionWorkerSettings {
    /// The database with the schema `users`.
    pub database: DatabaseSettings,
    /// The broker of the queue `user.deletions`.
    pub broker: BrokerSettings,
    /// The flow engine, if there is one.
    pub engine: Option<EngineSettings>,
    /// The URL of the people-task service.
    pub people_task_service: Url,
    /// The key of access tokens in PEM form, with which the worker authenticates at the people-task service.
    pub signing_key: Secret,
    /// The `iss` of tokens.
    pub issuer: String,
    /// Attempts of one step without any progress before the deletion fails.
    pub max_attempts: u32,
    /// How long a deletion may be in progress.
    pub max_age: Duration,
    /// The pause after the first failed attempt of a step. It doubles with every failure, up to 5 minutes.
    pub retry_pause: Duration,
    /// The minimum age of a deletion before people tasks are deleted.
    pub settle_time: Duration,
    /// How long a claim on a deletion lasts unless the worker renews it.
    pub lease: Duration,
    /// How long a ticket is valid after its deletion has ended.
    pub ticket_retention: Duration,
}

/// The address of the flow engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// The base URL.
    pub url: Url,
    /// The bearer token that the engine requires.
    pub token: Option<Secret>,
}

impl Settings for DeletionWorkerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let database = DatabaseSettings::read(reader)?;
        let broker = BrokerSettings::read(reader)?;
        let engine = read_engine(reader)?;
        Ok(Self {
            database,
            broker,
            engine,
            people_task_service: reader.required(
                "PEOPLE_TASK_SERVICE_URL",
                "the URL of the people-task service.",
            )?,
            signing_key: read_signing_key(reader)?,
            issuer: auth::read_issuer(reader)?,
            max_attempts: reader.in_range(
                "DELETE_MAX_ATTEMPTS",
                // More than a day: the first nine pauses are 8 minutes together, the others 5 minutes each.
                "360",
                "a whole number from 1 to 10000",
                "Attempts of one step of a deletion without any progress before the deletion fails. The default is about 30 hours.",
                |attempts| (1..=10_000).contains(attempts),
            )?,
            max_age: read_max_age(reader)?,
            retry_pause: reader.in_range(
                "DELETE_RETRY_PAUSE",
                "1s",
                "a duration from 1ms to 5m",
                "The pause after the first failed attempt of a step. It doubles with every failure, up to 5 minutes.",
                |pause| (Duration::from_millis(1)..=Duration::from_secs(300)).contains(pause),
            )?,
            settle_time: read_settle_time(reader)?,
            lease: read_lease(reader)?,
            ticket_retention: reader.or_default(
                "DELETE_TICKET_RETENTION",
                "30d",
                "How long the ticket of a deletion is valid after the deletion has ended.",
            )?,
        })
    }
}

fn read_max_age(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.in_range(
        "DELETE_MAX_AGE",
        "7d",
        "a duration from 1s to 365d",
        "How long a deletion may be in progress. Then it fails unless it makes progress, such as when the flow engine never finishes a step.",
        |age: &Duration| (1..=365 * 24 * 3_600).contains(&age.as_secs()),
    )
}

fn read_settle_time(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.or_default(
        "DELETE_SETTLE_TIME",
        "2s",
        "The minimum age of a deletion before people tasks are deleted. For about a second the revoked token may still create tasks.",
    )
}

fn read_lease(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.in_range(
        "DELETE_LEASE",
        "15s",
        "a duration from 1s to 1h; below 15s two workers may run the same step at once",
        "How long a claim on a deletion lasts unless the worker renews it. Then another worker may claim the deletion.",
        |lease| (Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(lease),
    )
}

fn read_engine(reader: &mut Reader) -> Result<Option<EngineSettings>, app_config::Error> {
    let url = reader.optional(
        "FLOW_ENGINE_URL",
        "The URL of the flow engine, which deletes its own data about a user. If not set, deletions skip these steps. Set it for the user-service and the deletion-worker, or for neither.",
    )?;
    let token = reader.optional("FLOW_ENGINE_TOKEN", "The bearer token for the flow engine.")?;
    Ok(url.map(|url| EngineSettings { url, token }))
}

fn read_signing_key(reader: &mut Reader) -> Result<Secret, app_config::Error> {
    reader.required(
        "TOKEN_SIGNING_KEY",
        "the key that signs tokens: an Ed25519 private key in PKCS#8 PEM form.",
    )
}
