//! What queries share.

use std::time::Duration;

use diesel::data_types::PgInterval;
use diesel::expression::AsExpression;
use diesel::sql_types::Interval;

/// A duration as the database adds it to its own clock, which is the one that all replicas share.
pub(crate) fn interval(duration: Duration) -> <PgInterval as AsExpression<Interval>>::Expression {
    let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    AsExpression::<Interval>::as_expression(PgInterval::from_microseconds(microseconds))
}
