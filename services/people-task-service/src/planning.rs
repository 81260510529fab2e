//! How Postgres plans statements that act on many rows by their keys.

/// The settings of connections for such statements. Connections keep one plan for each statement, because planning takes
/// longer than running. A plan that was made while the tables were empty must suit a million rows, so rows are found by
/// an index, one after the other.
///
/// A table that was planned while it was empty, such as `deliveries` after a quiet hour, seems to cost the same with any
/// index, even if all of it must be read. So nothing but an index that matches a condition may be usable:
/// - Bitmap scans and index-only scans are off.
/// - No condition matches a further column of a wrong index.
/// - A table is joined by `key = ANY(ARRAY[value])`. By `key = value`, Postgres may also read the whole index of the key,
///   because its order could serve a merge join, and compare each row with all values.
///
/// Do not combine `= ANY($1)` with a join: Postgres would look up every element for every row.
macro_rules! planning {
    () => {
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
         SET enable_indexonlyscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
    };
}

pub(crate) use planning;
