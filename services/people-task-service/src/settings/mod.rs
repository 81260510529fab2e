//! The settings of the two processes.

mod deciders;
mod mails;
mod quotas;
mod webhook_worker;

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Error, PublicUrl, Reader, Settings as _};
use auth::RemoteSettings;
use database::DatabaseSettings;
use messaging::BrokerSettings;
use outbound::{AddressPolicy, EngineOrigins};
use server::HttpServerSettings;
use url::Url;

use crate::header_keys::HeaderKeys;
use crate::webhook_signature::SigningSettings;

pub use deciders::DeciderSettings;
pub use mails::MailSettings;
pub use quotas::QuotaSettings;
pub use webhook_worker::WebhookWorkerSettings;

app_config::settings! {
    /// Settings of the people-task-service.
    pub struct PeopleTaskServiceSettings checked by DeciderSettings::check {
        /// The address to listen on. The service is internal: callers use the gateway.
        pub listen_address: SocketAddr = or_default("LISTEN_ADDRESS", "127.0.0.1:8082"),
        /// Limits and timeouts of HTTP.
        pub http: HttpServerSettings = part(),
        /// The database.
        pub database: DatabaseSettings = part(),
        /// The broker.
        pub broker: BrokerSettings = part(),
        /// The source of keys and revocations.
        pub authority: RemoteSettings = part(),
        /// The keys that sign webhooks. The service only publishes their public halves.
        pub signing: SigningSettings = part(),
        /// The addresses that webhooks may reach.
        pub addresses: AddressPolicy = part(),
        /// Where callers may shape requests although the address is not public.
        pub engine_origins: EngineOrigins = part(),
        /// The keys that encrypt the headers of webhooks.
        pub header_keys: HeaderKeys = part(),
        /// The page on which people see their tasks.
        pub dashboard_url: Url = by(read_dashboard_url),
        /// Mail about tasks.
        pub mails: MailSettings = part(),
        /// Who decides tasks.
        pub deciders: DeciderSettings = part(),
        /// What users may have and add.
        pub quotas: QuotaSettings = part(),
        /// How long rows of the audit log are kept.
        pub audit_retention: Duration = by(audit_log::read_retention),
    }
}

fn read_dashboard_url(reader: &mut Reader) -> Result<Url, Error> {
    let public_url = PublicUrl::read(reader)?;
    reader.or_default(
        "PEOPLE_TASKS_DASHBOARD_URL",
        format!("{public_url}/tasks"),
        "The page on which people see their tasks, by default the gateway's own under PUBLIC_URL.",
    )
}
