//! Arrays for statements that take many rows at once.

/// A column of rows, in their order.
pub(crate) fn column<'a, Row, T>(rows: &'a [Row], value: impl Fn(&'a Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
