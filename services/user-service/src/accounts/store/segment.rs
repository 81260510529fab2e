use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Bool, Text};

/// Users with the same `is_active`, `plan`, `scope` and `vendor`.
#[derive(Debug, QueryableByName)]
pub(super) struct Segment {
    #[diesel(sql_type = BigInt)]
    pub(super) id: i64,
    /// How many users it has.
    #[diesel(sql_type = BigInt)]
    pub(super) users: i64,
    /// The plan as lists are sorted by it.
    #[diesel(sql_type = Text)]
    pub(super) plan_key: String,
    #[diesel(sql_type = Bool)]
    pub(super) is_active: bool,
}
