use chrono::{DateTime, SecondsFormat, Utc};
use derive_more::{Display, From};
use serde::{Serialize, Serializer};

use crate::{FromText, Invalid};

/// A point in time, written as RFC 3339 in UTC with milliseconds: `2026-01-31T09:30:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, From)]
#[display("{}", _0.to_rfc3339_opts(SecondsFormat::Millis, true))]
#[cfg_attr(feature = "diesel", derive(diesel::deserialize::FromSqlRow))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(
    value_type = String,
    description = "RFC 3339 in UTC with milliseconds.",
    format = DateTime,
    example = "2026-01-31T09:30:00.000Z"
))]
pub struct Timestamp(pub DateTime<Utc>);

impl Timestamp {
    /// The last second that RFC 3339 can express.
    pub const MAX: Self = Self(DateTime::from_timestamp(253_402_300_799, 0).unwrap());
}

impl FromText for Timestamp {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let parsed = DateTime::parse_from_rfc3339(text);
        let wrong = |_| Invalid::new("invalid-date", "Must be a time in RFC 3339 format.");
        parsed.map(|time| Self(time.to_utc())).map_err(wrong)
    }
}

#[cfg(feature = "diesel")]
impl diesel::deserialize::FromSql<diesel::sql_types::Timestamptz, diesel::pg::Pg> for Timestamp {
    fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
        DateTime::from_sql(value).map(Self)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn timestamps_are_written_in_utc_with_milliseconds() {
        let moment = "2026-01-31T10:30:00.1234+01:00"
            .parse::<chrono::DateTime<chrono::Utc>>()
            .unwrap();
        assert_eq!(Timestamp(moment).to_string(), "2026-01-31T09:30:00.123Z");
    }
}
