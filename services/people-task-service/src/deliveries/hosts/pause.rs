use audit_log::{AuthMethod, RequestMeta};
use auth::Caller;
use database::{Connection, Database};

use crate::audit::AuditAction;
use crate::deliveries::error::DeliveryError;
use crate::deliveries::hosts::store::{self, HostRow};
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
    let pause = |connection: &mut Connection, host: &str| {
        if store::count_other_paused(connection, host)? >= MAX_PAUSED {
            return Err(DeliveryError::TooManyPausedHosts);
        }
        Ok(store::insert_paused(connection, host)?)
    };
    let action = AuditAction::DeliveriesPaused;
    let paused = change(database, admin, host, meta, action, pause).await?;
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
    let resume =
        |connection: &mut Connection, host: &str| Ok(store::delete_paused(connection, host)?);
    let action = AuditAction::DeliveriesResumed;
    let resumed = change(database, admin, host, meta, action, resume).await?;
    tracing::info!("the deliveries to a host are resumed");
    Ok(resumed)
}

/// Changes whether a host is paused, with an audit entry if `change` says that it was not so before.
async fn change(
    database: &Database,
    admin: &Caller,
    host: Host,
    meta: RequestMeta,
    action: AuditAction,
    change: impl FnOnce(&mut Connection, &str) -> Result<bool, DeliveryError> + Send + 'static,
) -> Result<HostRow, DeliveryError> {
    let identity = (admin.into(), AuthMethod::Token);
    let change = move |connection: &mut Connection| {
        if change(connection, host.as_str())? {
            let entry = action.on_host(host.as_str(), identity, meta);
            entry.record(connection)?;
        }
        Ok(store::load(connection, host.as_str())?)
    };
    database.transaction(change).await
}
