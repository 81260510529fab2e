use std::time::Duration;

use diesel::data_types::PgInterval;

/// A duration as an SQL interval, to be added to the database's clock, which all replicas share.
#[must_use]
pub fn interval(duration: Duration) -> PgInterval {
    PgInterval::from_microseconds(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}
