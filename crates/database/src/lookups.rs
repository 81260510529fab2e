use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use crate::{BatchLimits, Batches, Connection, Database, Error};

/// Returns the rows of keys, of which some may be the same.
type Find<Key, Row> = fn(&mut Connection, &[Key]) -> Result<HashMap<Key, Row>, Error>;

/// Finds rows by their keys. Keys that are looked up while another statement is under way share the next one.
///
/// A row is as it was committed before the lookup, or later.
pub struct Lookups<Key, Row> {
    batches: Batches<Key, Option<Row>, Error>,
}

impl<Key, Row> Lookups<Key, Row>
where
    Key: Copy + Eq + Hash + Send + Sync + 'static,
    Row: Clone + Send + 'static,
{
    /// Lookups with `find`. They run on the current runtime.
    pub fn new(database: Database, limits: BatchLimits, find: Find<Key, Row>) -> Self {
        let process = move |connection: &mut Connection, keys: &[Key], _| {
            let rows = find(connection, keys)?;
            let outcomes = keys.iter().map(|key| Some(Ok(rows.get(key).cloned())));
            Ok(outcomes.collect())
        };
        Self {
            batches: Batches::new(database, limits, process),
        }
    }

    /// Finds the row of a key.
    ///
    /// # Errors
    /// The statement fails, or [`Error::Busy`] if too many lookups wait.
    pub async fn find(&self, key: Key) -> Result<Option<Row>, Error> {
        self.batches.run(key).await
    }
}

impl<Key, Row> fmt::Debug for Lookups<Key, Row> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookups").finish_non_exhaustive()
    }
}
