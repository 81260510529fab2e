//! The settings of the two processes.

mod deciders;
mod mails;
mod quotas;
mod webhook_worker;

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Error, PublicUrl, Reader, Settings};
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

/// Settings of the people-task-service.
#[derive(Debug, Clone)]
pub struct PeopleTaskServiceSettings {
    /// The address to listen on; port 0 picks a free port.
    pub listen_address: SocketAddr,
    /// Limits and timeouts of HTTP.
    pub http: HttpServerSettings,
    /// The database.
    pub database: DatabaseSettings,
    /// The broker.
    pub broker: BrokerSettings,
    /// The source of keys and revocations.
    pub authority: RemoteSettings,
    /// The keys that sign webhooks. The service only publishes their public halves.
    pub signing: SigningSettings,
    /// The addresses that webhooks may reach.
    pub addresses: AddressPolicy,
    /// Where callers may shape requests although the address is not public.
    pub engine_origins: EngineOrigins,
    /// The keys that encrypt the headers of webhooks.
    pub header_keys: HeaderKeys,
    /// The page on which people see their tasks.
    pub dashboard_url: Url,
    /// Mail about tasks.
    pub mails: MailSettings,
    /// Who decides tasks.
    pub deciders: DeciderSettings,
    /// What users may have and add.
    pub quotas: QuotaSettings,
    /// How long rows of the audit log are kept.
    pub audit_retention: Duration,
}

impl Settings for PeopleTaskServiceSettings {
    fn read(reader: &mut Reader) -> Result<Self, Error> {
        let public_url = PublicUrl::read(reader)?;
        let dashboard_url = format!("{public_url}/tasks");
        let mails = MailSettings::read_with(reader, public_url)?;
        let deciders = DeciderSettings::read(reader)?;
        deciders.check(&mails)?;
        Ok(Self {
            listen_address: reader.or_default(
                "LISTEN_ADDRESS",
                "127.0.0.1:8082",
                "The address to listen on. The service is internal: callers use the gateway.",
            )?,
            http: HttpServerSettings::read(reader)?,
            database: DatabaseSettings::read(reader)?,
            broker: BrokerSettings::read(reader)?,
            authority: RemoteSettings::read(reader)?,
            signing: SigningSettings::read(reader)?,
            addresses: AddressPolicy::read(reader)?,
            engine_origins: EngineOrigins::read(reader)?,
            header_keys: HeaderKeys::read(reader)?,
            dashboard_url: reader.or_default(
                "PEOPLE_TASKS_DASHBOARD_URL",
                dashboard_url,
                "The page on which people see their tasks, by default the gateway's own under PUBLIC_URL.",
            )?,
            mails,
            deciders,
            quotas: QuotaSettings::read(reader)?,
            audit_retention: audit_log::read_retention(reader)?,
        })
    }
}
