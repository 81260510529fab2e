//! How Postgres plans statements that act on many rows by their keys.

/// The settings of connections for such statements. Connections keep one plan for each statement, because planning takes
/// longer than running. A plan that was made while the tables were empty must suit a million rows, so rows are found by
/// an index, one after the other. Where a scan is the only way, its plan looks expensive enough to be compiled, which
/// would take longer than running it.
///
/// Do not combine `= ANY(array)` with a join: Postgres would look up every element for every row.
macro_rules! planning {
    () => {
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; \
         SET enable_mergejoin = off; SET jit = off; "
    };
}

pub(crate) use planning;
