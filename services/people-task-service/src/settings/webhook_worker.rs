use std::sync::Arc;
use std::time::Duration;

use app_config::{Csv, Reader, Settings};
use database::DatabaseSettings;
use messaging::BrokerSettings;
use outbound::{AddressPolicy, EngineOrigins, Resolve};

use crate::header_keys::HeaderKeys;
use crate::webhook_signature::SigningSettings;

/// The number of concurrent attempts, over all hosts.
const MAX_IN_FLIGHT: usize = 2_048;
/// After this long without a sign of life a worker is taken for dead, and its claims are released.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a worker must run before it tries deliveries that may end workers. One that is ended by something else soon
/// after its start must not be evidence against them.
const SUSPECTS_AFTER: Duration = Duration::from_secs(10);

/// Settings of the webhook-worker.
#[derive(Clone)]
pub struct WebhookWorkerSettings {
    /// The database of tasks and deliveries.
    pub database: DatabaseSettings,
    /// The broker that delivers messages about due deliveries.
    pub broker: BrokerSettings,
    /// The keys that sign.
    pub signing: SigningSettings,
    /// The addresses that webhooks may reach.
    pub policy: AddressPolicy,
    /// Where callers may shape requests although the address is not public.
    pub engine_origins: EngineOrigins,
    /// The keys that decrypt the headers of webhooks.
    pub header_keys: HeaderKeys,
    /// The pauses after failed attempts. After the last one, the delivery fails.
    pub retry_schedule: Vec<Duration>,
    /// How long a receiver may take to respond.
    pub timeout: Duration,
    /// The number of concurrent requests to one host, over all workers.
    pub max_in_flight_per_host: u32,
    /// How long finished deliveries are kept.
    pub retention: Duration,
    /// The number of concurrent attempts. Operators cannot set it.
    pub max_in_flight: usize,
    /// After this long without a sign of life a worker is taken for dead. Operators cannot set it.
    pub silence: Duration,
    /// How long a worker must run before it tries deliveries that may end workers. Operators cannot set it.
    pub suspects_after: Duration,
    /// Resolves host names in place of the system's resolver, in tests.
    pub resolver: Option<Arc<dyn Resolve>>,
}

impl Settings for WebhookWorkerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            database: DatabaseSettings::read(reader)?,
            broker: BrokerSettings::read(reader)?,
            signing: SigningSettings::read(reader)?,
            policy: AddressPolicy::read(reader)?,
            engine_origins: EngineOrigins::read(reader)?,
            header_keys: HeaderKeys::read(reader)?,
            retry_schedule: retry_schedule(reader)?,
            timeout: reader.in_range(
                "WEBHOOK_TIMEOUT",
                "10s",
                "a duration from `100ms` to `60s`",
                "How long a receiver may take to respond.",
                |timeout| (100..=60_000).contains(&Duration::as_millis(timeout)),
            )?,
            max_in_flight_per_host: reader.in_range(
                "WEBHOOK_MAX_IN_FLIGHT_PER_HOST",
                "16",
                "a whole number from 1 to 256",
                "Concurrent webhook requests to one host, whatever the ports and schemes, over all workers.",
                |limit| (1..=256).contains(limit),
            )?,
            retention: reader.or_default(
                "WEBHOOK_RETENTION",
                "30d",
                "How long finished deliveries and their attempts are kept.",
            )?,
            max_in_flight: MAX_IN_FLIGHT,
            silence: SILENCE,
            suspects_after: SUSPECTS_AFTER,
            resolver: None,
        })
    }
}

fn retry_schedule(reader: &mut Reader) -> Result<Vec<Duration>, app_config::Error> {
    let Csv(pauses): Csv<Duration> = reader.or_default(
        "WEBHOOK_RETRY_SCHEDULE",
        "5s,30s,2m,10m,30m,2h,6h,12h",
        "The pauses after failed attempts, each varied by up to 20 %. After the last one, the delivery fails.",
    )?;
    Ok(pauses)
}

impl std::fmt::Debug for WebhookWorkerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookWorkerSettings")
            .field("timeout", &self.timeout)
            .field("max_in_flight_per_host", &self.max_in_flight_per_host)
            .finish_non_exhaustive()
    }
}
