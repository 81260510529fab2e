use audit_log::{AuthMethod, RequestMeta};
use auth::Caller;
use database::{Connection, Database};

use crate::audit::AuditAction;
use crate::deliveries::error::DeliveryError;
use crate::deliveries::hosts::store::{self, HostRow, Inserted};
use crate::deliveries::requests::Host;

/// How many hosts may be paused. Workers read all of them several times a second.
const MAX_PAUSED: i64 = 1_000;

/// Pauses the deliveries to a host. Those that are being sent at this moment end, and no others are sent until it is
/// resumed.
///
/// # Errors
/// [`DeliveryError::TooManyPausedHosts`].
#[tracing::instrument(skip_all)]
pub(crate) async fn pause(
    database: &Database,
    admin: &Caller,
    host: Host,
    meta: RequestMeta,
) -> Result<HostRow, DeliveryError> {
    let identity = (admin.into(), AuthMethod::Token);
    let pause = move |connection: &mut Connection| {
        match store::insert_paused(connection, host.as_str(), MAX_PAUSED)? {
            Inserted::Full => return Err(DeliveryError::TooManyPausedHosts),
            Inserted::Exists => {}
            Inserted::New => {
                let entry = AuditAction::DeliveriesPaused.on_host(host.as_str(), identity, meta);
                entry.record(connection).map_err(database::Error::from)?;
            }
        }
        Ok(store::load(connection, host.as_str())?)
    };
    let paused = database.transaction(pause).await?;
    tracing::info!("the deliveries to a host are paused");
    Ok(paused)
}

/// Sends the deliveries to a host again. Workers notice it within a second.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all)]
pub(crate) async fn resume(
    database: &Database,
    admin: &Caller,
    host: Host,
    meta: RequestMeta,
) -> Result<HostRow, DeliveryError> {
    let identity = (admin.into(), AuthMethod::Token);
    let resume = move |connection: &mut Connection| {
        if store::delete_paused(connection, host.as_str())? {
            let entry = AuditAction::DeliveriesResumed.on_host(host.as_str(), identity, meta);
            entry.record(connection).map_err(database::Error::from)?;
        }
        Ok::<_, DeliveryError>(store::load(connection, host.as_str())?)
    };
    let resumed = database.transaction(resume).await?;
    tracing::info!("the deliveries to a host are resumed");
    Ok(resumed)
}
