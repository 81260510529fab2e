//! Rows that no other transaction has locked.

/// Locks those rows of `$table` of which `$owner` is one of `$owners` and that no other transaction has locked, until the
/// end of the transaction. Evaluates to the owners that have another one, or returns the error.
macro_rules! lock_free_rows {
    ($connection:expr, $table:ident of type $id:ty, $owner:ident in $owners:expr) => {{
        let rows = $table::table.filter($table::$owner.eq_any($owners));
        let locked: Vec<$id> = rows
            .clone()
            .for_update()
            .skip_locked()
            .select($table::id)
            .load($connection)?;
        let others = rows.filter($table::id.ne_all(locked));
        others.select($table::$owner).load($connection)?
    }};
}

pub(crate) use lock_free_rows;
