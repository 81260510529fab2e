use std::time::Duration;

use database::{Error, interval, prepared};
use diesel::sql_types::{Integer, Interval};
use diesel::{PgConnection, QueryableByName, RunQueryDsl as _};

#[derive(QueryableByName)]
struct Maintained {
    #[diesel(sql_type = Integer)]
    dropped: i32,
}

/// Creates the next partitions of finished deliveries, and drops those of deliveries that have all been finished for
/// longer than `keep`. Returns the number of dropped ones.
pub(super) fn maintain(connection: &mut PgConnection, keep: Duration) -> Result<i32, Error> {
    // DDL belongs to the owner's function.
    let done: Maintained = prepared("SELECT maintain_finished_deliveries($1) AS dropped")
        .bind::<Interval, _>(interval(keep))
        .get_result(connection)?;
    Ok(done.dropped)
}
