//! The hosts of deliveries, and pausing them.
//!
//! Deliveries to a paused host wait: workers do not load them, so they are neither sent nor counted as attempts. The
//! rows of `paused_hosts` are all that there is; a delivery does not know whether it is paused.

pub(crate) mod routes;
pub(super) mod store;

use audit_log::{AuthMethod, RequestMeta};
use auth::Caller;
use database::{Connection, Database, Error};
use serde_json::json;

use self::store::HostRow;
use crate::audit::AuditAction;
use crate::deliveries::requests::{Host, HostQuery};
use crate::error::TaskError;

/// How many hosts may be paused. Workers read all of them several times a second.
const MAX_PAUSED: i64 = 1_000;

/// The next hosts with deliveries that are pending or have failed, and those that are paused, in alphabetical order.
/// Returns with them whether there are more after the last one.
#[tracing::instrument(skip_all)]
fn list(connection: &mut Connection, query: &HostQuery) -> Result<(Vec<HostRow>, bool), Error> {
    if let Some(host) = &query.host {
        return Ok((vec![store::load(connection, host.as_str())?], false));
    }
    let after = query.after.as_ref().map_or("", |host| host.as_str());
    let mut hosts = store::load_page(connection, query.status, after, query.limit + 1)?;
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let has_more = hosts.len() > limit;
    hosts.truncate(limit);
    Ok((hosts, has_more))
}

/// Pauses the deliveries to a host, or sends them again. Those that are being sent at this moment end. Workers notice a
/// change within a second.
///
/// # Errors
/// [`TaskError::TooManyPausedHosts`].
#[tracing::instrument(skip_all)]
async fn set_paused(
    database: &Database,
    admin: &Caller,
    host: Host,
    meta: RequestMeta,
    is_paused: bool,
) -> Result<HostRow, TaskError> {
    let identity = (admin.into(), AuthMethod::Token);
    let (action, state) = if is_paused {
        (AuditAction::DeliveriesPaused, "paused")
    } else {
        (AuditAction::DeliveriesResumed, "resumed")
    };
    let change = move |connection: &mut Connection| {
        let host = host.as_str();
        if is_paused && store::count_other_paused(connection, host)? >= MAX_PAUSED {
            return Err(TaskError::TooManyPausedHosts);
        }
        if store::set_paused(connection, host, is_paused)? {
            let entry = action.by(identity, meta);
            entry.detail(json!({ "host": host })).record(connection)?;
        }
        Ok(store::load(connection, host)?)
    };
    let changed = database.transaction(change).await?;
    tracing::info!("the deliveries to a host are {state}");
    Ok(changed)
}
