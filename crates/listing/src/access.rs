//! The choice of the access path to the rows of a list. None depends on the planner's estimates to be fast:
//! [why](../../../docs/decisions/lists-from-one-table.md).
//!
//! The store of a list says which indexes lead to its rows. The first of the paths *ordered*, *few*, *first* and *all* that
//! serves it is taken. *Few* comes first if it is known that its rows are few; otherwise they are counted.

use database::{Connection, Error, composed};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt};

use crate::statement::{Bind, Binds, PageLimits, Statement};
use crate::{Direction, Page};

/// The rows of a list, as its pages show them.
#[derive(Debug)]
pub struct Table {
    /// The columns of a row.
    pub columns: &'static str,
    /// The tables that have the columns, joined to `page`, which has the column `id`.
    pub joins: &'static str,
    /// See [`Statement::size`].
    pub size: &'static str,
}

/// An order by a key, and by the identifier in the same direction for rows with the same key.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// The direction.
    pub direction: Direction,
    /// Whether rows may have no key. They come last.
    pub nullable: bool,
}

impl Order {
    fn by(self, key: &str, id: &str) -> String {
        let direction = self.direction.keyword();
        // It is the default of ascending orders. For a key that every row has, it would rule out the index.
        let nulls = match self.direction {
            Direction::Descending if self.nullable => " NULLS LAST",
            _ => "",
        };
        format!("{key} {direction}{nulls}, {id} {direction}")
    }
}

/// Rows of a list.
#[derive(Debug, Clone)]
pub struct Source {
    /// What follows `FROM`: tables, and a condition after `WHERE`.
    pub rows: String,
    /// The column of the identifier.
    pub id: &'static str,
    /// The column or expression that the list is sorted by.
    pub key: &'static str,
}

impl Source {
    fn first(&self, order: Order, limit: &str) -> String {
        let Self { rows, id, key } = self;
        let order = order.by(key, id);
        format!("(SELECT {id} AS id, {key} AS sort_key FROM {rows} ORDER BY {order} LIMIT {limit})")
    }
}

/// Rows that an index finds.
#[derive(Debug, Clone)]
pub struct Indexed {
    /// The table.
    pub table: &'static str,
    /// The condition on its rows.
    pub condition: String,
    /// `ORDER BY` with the order of the index, so that Postgres takes no other way to the first of them, or nothing.
    pub order: &'static str,
}

impl Indexed {
    /// The query for the identifiers of the first ones.
    pub fn first(&self, limit: i64) -> String {
        let (table, condition, order) = (self.table, &self.condition, self.order);
        format!("(SELECT id FROM {table} WHERE {condition} {order} LIMIT {limit})")
    }
}

/// Few rows among which are those of a list.
#[derive(Debug)]
pub enum Few {
    /// This number of rows: exactly those of the list.
    Known(i64, Source),
    /// The rows that the indexes of any of these find together.
    Among(Vec<Vec<Indexed>>),
}

/// The first rows in the order of an index, of which some are those of a list.
#[derive(Debug)]
pub struct First {
    /// The rows.
    pub source: Source,
    /// The order of the index.
    pub order: Order,
    /// How many rows are looked through.
    pub rows: i64,
    /// The last row of a page for which this is tried.
    pub max_end: i64,
    /// What follows `FROM first`, which has the column `id`: a join, and the conditions of the list.
    pub matching: String,
}

/// The paths to the rows of one list.
#[derive(Debug)]
pub struct AccessPaths {
    /// What is loaded.
    pub table: &'static Table,
    /// The values of all paths.
    pub binds: Binds,
    /// The order of the list.
    pub order: Order,
    /// The sources of which each is read in the order of an index, and which together are the list. Empty if there are none.
    pub ordered: Vec<Source>,
    /// See [`Statement::is_cached`]; for `ordered`.
    pub is_cached: bool,
    /// Where there may be few rows.
    pub few: Few,
    /// How many rows are few.
    pub max_few: i64,
    /// Where the page may be among the first rows.
    pub first: Option<First>,
    /// All rows of the list; a condition with `AND` may follow.
    pub all: Source,
}

impl AccessPaths {
    /// Loads a page.
    ///
    /// # Errors
    /// A statement fails.
    pub fn load<T: QueryableByName<Pg> + 'static>(
        mut self,
        connection: &mut Connection,
        limits: PageLimits,
    ) -> Result<Page<T>, Error> {
        let end = self.binds.add(Bind::Number(limits.end()));
        let load = |connection: &mut _, path: &str, is_cached| {
            let statement = self.statement(path, limits, is_cached);
            statement.load::<T>(connection, limits)
        };
        if !self.ordered.is_empty() && self.known_few().is_none() {
            let first = |source: &Source| source.first(self.order, &end);
            let paths: Vec<_> = self.ordered.iter().map(first).collect();
            return load(connection, &paths.join(" UNION "), self.is_cached);
        }
        if let Some(few) = self.find_few(connection)? {
            return load(connection, &few.first(self.order, &end), false);
        }
        if let Some(first) = &self.first
            && limits.end() <= first.max_end
        {
            let page = load(connection, &first.page(&end), false)?;
            if page.found == limits.paging.rows_to_fetch() {
                return Ok(page);
            }
        }
        load(connection, &self.all.first(self.order, &end), false)
    }

    /// Whether a page is loaded by one path, which reads no table from its beginning to its end.
    pub fn are_indexed(&self) -> bool {
        !self.ordered.is_empty() || self.known_few().is_some()
    }

    /// Counts the rows.
    ///
    /// # Errors
    /// A statement fails.
    pub fn count(self, connection: &mut Connection) -> Result<i64, Error> {
        let few = self.find_few(connection)?;
        count(connection, &few.unwrap_or(self.all).rows, self.binds, false)
    }

    fn statement(&self, path: &str, limits: PageLimits, is_cached: bool) -> Statement {
        let Table { columns, joins, .. } = self.table;
        let mut binds = self.binds.clone();
        let (order, page) = (self.order.by("sort_key", "id"), binds.page(limits.paging));
        let query = format!(
            "WITH page AS (SELECT id, sort_key FROM ({path}) AS found ORDER BY {order} {page}) \
             SELECT {columns} FROM page {joins} ORDER BY {order}"
        );
        Statement {
            query,
            binds,
            size: self.table.size,
            is_cached,
        }
    }

    fn known_few(&self) -> Option<&Source> {
        match &self.few {
            Few::Known(rows, source) if *rows <= self.max_few => Some(source),
            _ => None,
        }
    }

    fn find_few(&self, connection: &mut Connection) -> Result<Option<Source>, Error> {
        let Few::Among(supersets) = &self.few else {
            return Ok(self.known_few().cloned());
        };
        let queries = |limit| {
            let union = move |superset: &Vec<Indexed>| {
                let parts: Vec<_> = superset.iter().map(|part| part.first(limit)).collect();
                parts.join(" UNION ALL ")
            };
            supersets.iter().map(union)
        };
        if supersets.is_empty() {
            return Ok(None);
        }
        let more = self.max_few + 1;
        let counts: Vec<_> = queries(more)
            .map(|found| {
                format!(
                    "(SELECT count(*) FROM (SELECT FROM ({found}) AS found LIMIT {more}) AS few)"
                )
            })
            .collect();
        let sql = format!("SELECT ARRAY[{}]::bigint[]", counts.join(", "));
        let sizes = composed(sql, self.binds.clone(), false).returning::<Array<BigInt>>();
        let sizes: Vec<i64> = sizes.get_result(connection)?;
        // Rows that are inserted meanwhile may exceed the limit.
        let smallest = queries(self.max_few * 2)
            .zip(sizes)
            .min_by_key(|(_, size)| *size);
        let few = smallest.filter(|(_, size)| *size <= self.max_few);
        Ok(few.map(|(found, _)| {
            let Source { rows, id, key } = &self.all;
            let rows = format!("{rows} AND {id} = ANY(ARRAY({found}))");
            Source { rows, id, key }
        }))
    }
}

impl First {
    /// The query for the identifiers and keys of the rows that match, up to the end of a page.
    fn page(&self, end: &str) -> String {
        format!(
            "SELECT first.id, first.sort_key FROM {first} AS first {matching} ORDER BY {order} LIMIT {end}",
            first = self.source.first(self.order, &self.rows.to_string()),
            matching = self.matching,
            order = self.order.by("first.sort_key", "first.id"),
        )
    }
}

/// Counts rows: `rows` is what follows `FROM`. For `is_cached`, see [`Statement::is_cached`].
///
/// # Errors
/// The statement fails.
pub fn count(
    connection: &mut Connection,
    rows: &str,
    binds: Binds,
    is_cached: bool,
) -> Result<i64, Error> {
    let sql = format!("SELECT count(*) FROM {rows}");
    let count = composed(sql, binds, is_cached).returning::<BigInt>();
    Ok(count.get_result(connection)?)
}
