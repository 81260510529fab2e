/// Locks those of some rows of `$table` that no other transaction has locked, until the end of the transaction. Evaluates
/// to the owners that have another one, or returns the error.
macro_rules! lock_free_rows {
    ($connection:expr, $rows:expr, $table:ident of type $id:ty, $owner:ident) => {{
        let rows = $rows;
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
