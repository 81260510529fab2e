use std::sync::Arc;
use std::time::Duration;

use app_config::{Csv, Error, Reader};
use database::DatabaseSettings;
use messaging::BrokerSettings;
use outbound::{AddressPolicy, EngineOrigins, Resolve};

use crate::header_keys::HeaderKeys;
use crate::webhook_signature::SigningSettings;

app_config::settings! {
    /// Settings of the webhook-worker.
    pub struct WebhookWorkerSettings {
        /// The database of tasks and deliveries.
        pub database: DatabaseSettings = part(),
        /// The broker that delivers messages about due deliveries.
        pub broker: BrokerSettings = part(),
        /// The keys that sign.
        pub signing: SigningSettings = part(),
        /// The addresses that webhooks may reach.
        pub policy: AddressPolicy = part(),
        /// Where callers may shape requests although the address is not public.
        pub engine_origins: EngineOrigins = part(),
        /// The keys that decrypt the headers of webhooks.
        pub header_keys: HeaderKeys = part(),
        /// The pauses after failed attempts, each varied by up to 20 %. After the last one, the delivery fails.
        pub retry_schedule: Csv<Duration> = or_default("WEBHOOK_RETRY_SCHEDULE", "5s,30s,2m,10m,30m,2h,6h,12h"),
        /// How long a receiver may take to respond.
        pub timeout: Duration = in_range(
            "WEBHOOK_TIMEOUT",
            "10s",
            "a duration from `100ms` to `60s`",
            |timeout| (100..=60_000).contains(&Duration::as_millis(timeout))
        ),
        /// Concurrent webhook requests to one host, whatever the ports and schemes, over all workers.
        pub max_in_flight_per_host: u32 = in_range(
            "WEBHOOK_MAX_IN_FLIGHT_PER_HOST",
            "16",
            "a whole number from 1 to 256",
            |limit| (1..=256).contains(limit)
        ),
        /// How long finished deliveries and their attempts are kept.
        pub retention: Duration = or_default("WEBHOOK_RETENTION", "30d"),
        /// The number of concurrent attempts, over all hosts. Operators cannot set it.
        pub max_in_flight: usize = by(fixed(2_048)),
        /// After this long without a sign of life a worker is taken for dead, and others take its hosts. Operators cannot set
        /// it.
        pub silence: Duration = by(fixed(Duration::from_secs(2))),
        /// How long a worker must run before it tries deliveries that may end workers. One that is ended by something else
        /// soon after its start must not be evidence against them. Operators cannot set it.
        pub suspects_after: Duration = by(fixed(Duration::from_secs(10))),
        /// Resolves host names in place of the system's resolver, in tests.
        pub resolver: Option<Arc<dyn Resolve>> = by(fixed(None)),
    }
}

/// What is read for a field that is no setting.
fn fixed<T>(value: T) -> impl FnOnce(&mut Reader) -> Result<T, Error> {
    |_| Ok(value)
}
