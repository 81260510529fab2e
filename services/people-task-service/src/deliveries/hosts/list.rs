use database::{Connection, Database, Error};

use crate::deliveries::hosts::requests::HostQuery;
use crate::deliveries::hosts::store::{self, HostRow};

/// The next hosts with deliveries that are pending or have failed, and those that are paused, in alphabetical order.
/// Returns with them whether there are more after the last one.
///
/// # Errors
/// Only the database can fail.
#[tracing::instrument(skip_all)]
pub(crate) async fn list(
    database: Database,
    query: HostQuery,
) -> Result<(Vec<HostRow>, bool), Error> {
    let limit = query.limit;
    let load = move |connection: &mut Connection| {
        if let Some(host) = &query.host {
            return Ok(vec![store::load(connection, host.as_str())?]);
        }
        let after = query.after.as_ref().map_or("", |host| host.as_str());
        store::load_page(connection, query.status, after, limit + 1)
    };
    let mut hosts = database.run(load).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let has_more = hosts.len() > limit;
    hosts.truncate(limit);
    Ok((hosts, has_more))
}
