use std::time::Duration;

use database::{Error, interval, prepared};
use diesel::sql_types::{Bool, Interval};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};

/// Creates the next partitions of finished deliveries. DDL belongs to the owner's functions.
pub(super) fn create_partitions(connection: &mut PgConnection) -> Result<(), Error> {
    prepared("SELECT create_finished_deliveries_partitions()").execute(connection)?;
    Ok(())
}

#[derive(QueryableByName)]
struct Dropped {
    #[diesel(sql_type = Bool)]
    dropped: bool,
}

/// Drops a partition of deliveries that have all been finished for longer than `keep`. Returns whether there was one.
pub(super) fn drop_partition(connection: &mut PgConnection, keep: Duration) -> Result<bool, Error> {
    let drop: Dropped = prepared("SELECT drop_finished_deliveries_partition($1) AS dropped")
        .bind::<Interval, _>(interval(keep))
        .get_result(connection)?;
    Ok(drop.dropped)
}
