//! How Postgres plans statements that act on many rows by their keys.

/// The settings of connections for such statements. Connections keep one plan for each statement, because planning takes
/// longer than running. A plan that was made while the tables were empty must suit a million rows, so rows are found by
/// an index, one after the other. Where a scan is the only way, its plan looks expensive enough to be compiled, which
/// would take longer than running it.
///
/// For a table that was empty when it was analysed, such as `deliveries` after a quiet hour, each index looks as good as
/// any other, even if all of it must be read. Without bitmap scans and index-only scans, only indexes that match a
/// condition are left. So no condition may match a further column of a wrong index.
///
/// Do not combine `= ANY(array)` with a join: Postgres would look up every element for every row.
macro_rules! planning {
    () => {
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; \
         SET enable_indexonlyscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; "
    };
}

pub(crate) use planning;
