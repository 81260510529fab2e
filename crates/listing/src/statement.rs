//! The statement that loads a page, and the values that are bound to it.

use chrono::{DateTime, Utc};
use database::{Connection, Error, composed};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Text, Timestamptz};

use crate::{Page, Paging};

/// A value that is bound to a statement.
#[derive(Debug, Clone)]
pub enum Bind {
    /// `bytea`
    Bytes(Vec<u8>),
    /// `text`
    Text(String),
    /// `bigint`
    Number(i64),
    /// `timestamptz`
    Time(DateTime<Utc>),
}

/// The values of a statement. The statement may use each any number of times.
#[derive(Debug, Clone, Default)]
pub struct Binds(Vec<Bind>);

impl Binds {
    /// Adds a value and returns its placeholder.
    pub fn add(&mut self, bind: Bind) -> String {
        self.0.push(bind);
        format!("${}", self.0.len())
    }

    /// Adds a text and returns its placeholder.
    pub fn text(&mut self, text: impl Into<String>) -> String {
        self.add(Bind::Text(text.into()))
    }

    /// What follows `ORDER BY` of a query that selects the rows of a page, and one more.
    pub fn page(&mut self, paging: Paging) -> String {
        let rows = self.add(Bind::Number(paging.rows_to_fetch()));
        let offset = self.add(Bind::Number(paging.offset));
        format!("LIMIT {rows} OFFSET {offset}")
    }
}

impl QueryFragment<Pg> for Binds {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for bind in &self.0 {
            match bind {
                Bind::Bytes(bytes) => out.push_bind_param::<Binary, _>(bytes)?,
                Bind::Text(text) => out.push_bind_param::<Text, _>(text)?,
                Bind::Number(number) => out.push_bind_param::<BigInt, _>(number)?,
                Bind::Time(time) => out.push_bind_param::<Timestamptz, _>(time)?,
            }
        }
        Ok(())
    }
}

/// Which rows of a list are loaded.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    /// The requested page.
    pub paging: Paging,
    /// The maximum size of its rows, in bytes. One row is loaded even if it is larger.
    pub bytes: usize,
}

impl PageLimits {
    /// How many rows there are up to the end of the page.
    pub(crate) fn end(self) -> i64 {
        let Self { paging, .. } = self;
        paging.offset.saturating_add(paging.rows_to_fetch())
    }
}

/// The rows of a page, in their order.
#[derive(Debug)]
pub struct Statement {
    /// An ordered query of as many rows as [`Binds::page`] says.
    pub query: String,
    /// The values of the query.
    pub binds: Binds,
    /// An SQL expression: the bytes of a row of `page`, which has the query's columns. It should measure texts by
    /// `octet_length`, which does not read their values.
    pub size: &'static str,
    /// Whether connections prepare it once; only for few texts, because each connection keeps them for ever.
    pub is_cached: bool,
}

#[derive(QueryableByName)]
struct Found<T> {
    #[diesel(embed)]
    listed: T,
    #[diesel(sql_type = BigInt)]
    found: i64,
}

impl Statement {
    /// Loads the rows of a page until one exceeds the limits. Postgres leaves out the rest before it reads their values.
    ///
    /// # Errors
    /// The statement fails.
    pub fn load<T: QueryableByName<Pg> + 'static>(
        mut self,
        connection: &mut Connection,
        limits: PageLimits,
    ) -> Result<Page<T>, Error> {
        let bytes = i64::try_from(limits.bytes).unwrap_or(i64::MAX);
        let rows = self.binds.add(Bind::Number(limits.paging.limit));
        let bytes = self.binds.add(Bind::Number(bytes));
        // A query with an ordered subquery keeps its order in window functions that have no order of their own.
        let sql = format!(
            "SELECT * FROM (SELECT page.*, count(*) OVER () AS found, row_number() OVER up_to_here AS number, \
                 sum(({size})::integer) OVER up_to_here AS size_so_far \
                 FROM ({query}) AS page WINDOW up_to_here AS (ROWS UNBOUNDED PRECEDING)\
             ) AS limited WHERE number = 1 OR (number <= {rows} AND size_so_far <= {bytes}) ORDER BY number",
            size = self.size,
            query = self.query,
        );
        let found: Vec<Found<T>> = composed(sql, self.binds, self.is_cached).load(connection)?;
        let number = found.first().map_or(0, |first| first.found);
        let rows = found.into_iter().map(|found| found.listed);
        Ok(limits.paging.page(rows.collect(), number))
    }
}
