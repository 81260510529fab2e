use std::time::Duration;

use database::interval;
use diesel::dsl::sql_query;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Integer, Interval, Nullable, Text};

/// Creates the partitions of this month and of the next three.
pub(crate) fn create_partitions(connection: &mut PgConnection) -> QueryResult<()> {
    sql_query("SELECT create_audit_log_partitions()").execute(connection)?;
    Ok(())
}

/// Drops the oldest partition if all its rows are older than `keep`, and returns its name.
pub(crate) fn drop_partition(
    connection: &mut PgConnection,
    keep: Duration,
) -> QueryResult<Option<String>> {
    #[derive(QueryableByName)]
    struct Dropped {
        #[diesel(sql_type = Nullable<Text>)]
        partition: Option<String>,
    }
    let dropped: Dropped = sql_query("SELECT drop_audit_log_partition($1) AS partition")
        .bind::<Interval, _>(interval(keep))
        .get_result(connection)?;
    Ok(dropped.partition)
}

/// Deletes at most `most` rows that do not go with their partition, and returns how many.
pub(crate) fn prune(connection: &mut PgConnection, keep: Duration, most: i32) -> QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Pruned {
        #[diesel(sql_type = BigInt)]
        rows: i64,
    }
    let pruned: Pruned = sql_query("SELECT prune_audit_log($1, $2) AS rows")
        .bind::<Interval, _>(interval(keep))
        .bind::<Integer, _>(most)
        .get_result(connection)?;
    Ok(pruned.rows)
}
