use std::time::Duration;

use database::{Error, interval, prepared};
use diesel::sql_types::{Bool, Interval};
use diesel::{PgConnection, RunQueryDsl as _};

/// Creates the next partitions of finished deliveries. DDL belongs to the owner's functions.
pub(super) fn create_partitions(connection: &mut PgConnection) -> Result<(), Error> {
    prepared("SELECT create_finished_deliveries_partitions()").execute(connection)?;
    Ok(())
}

/// Drops a partition of deliveries that have all been finished for longer than `keep`. Returns whether there was one.
pub(super) fn drop_partition(connection: &mut PgConnection, keep: Duration) -> Result<bool, Error> {
    let drop = prepared("SELECT drop_finished_deliveries_partition($1)")
        .bind::<Interval, _>(interval(keep));
    Ok(drop.returning::<Bool>().get_result(connection)?)
}
