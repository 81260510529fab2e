use std::collections::HashMap;
use std::hash::Hash;

use crate::{BatchLimits, Batches, Connection, Database, Error};

/// Finds rows by their keys. Keys that are looked up while another statement is under way share the next one.
///
/// A row is as it was committed before the lookup, or later.
pub type Lookups<Key, Row> = Batches<Key, Option<Row>, Error>;

/// Returns the rows of keys, of which some may be the same.
type Find<Key, Row> = fn(&mut Connection, &[Key]) -> Result<HashMap<Key, Row>, Error>;

/// Starts lookups with `find`, like [`Batches::new`].
pub fn lookups<Key, Row>(
    database: Database,
    limits: BatchLimits,
    find: Find<Key, Row>,
) -> Lookups<Key, Row>
where
    Key: Copy + Eq + Hash + Send + Sync + 'static,
    Row: Clone + Send + 'static,
{
    Batches::new(database, limits, move |connection, keys: &[Key], _| {
        let rows = find(connection, keys)?;
        let outcomes = keys.iter().map(|key| Some(Ok(rows.get(key).cloned())));
        Ok(outcomes.collect())
    })
}
