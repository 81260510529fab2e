//! Values that statements take.

use std::time::Duration;

use diesel::data_types::PgInterval;

/// A duration as an SQL interval, to be added to the database's clock, which all replicas share.
#[must_use]
pub fn interval(duration: Duration) -> PgInterval {
    PgInterval::from_microseconds(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

/// A column of rows, in their order, for a statement that takes many rows as arrays.
pub fn column<'a, Row, T>(rows: &'a [Row], value: impl Fn(&'a Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
