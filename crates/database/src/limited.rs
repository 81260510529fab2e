//! Pages of rows that may be large.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::query_dsl::methods::LoadQuery;
use diesel::sql_types::BigInt;
use diesel::{PgConnection, QueryResult, RunQueryDsl};

/// How much of a query [`load_limited`] loads.
#[derive(Debug, Clone, Copy)]
pub struct RowLimit {
    /// The maximum number of rows.
    pub rows: i64,
    /// The maximum size of all rows, in bytes. One row is loaded even if it is larger.
    pub bytes: i64,
}

impl RowLimit {
    /// A limit of the number of rows and of their bytes.
    #[must_use]
    pub fn new(rows: i64, bytes: usize) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        Self { rows, bytes }
    }
}

/// The first rows of a query.
#[derive(Debug)]
pub struct LimitedRows<T> {
    /// The rows that are within the limit.
    pub rows: Vec<T>,
    /// How many rows the query has, with those beyond the limit.
    pub found: i64,
}

impl<T> FromIterator<(T, i64)> for LimitedRows<T> {
    /// Collects rows, each of which comes with the number of found rows.
    fn from_iter<I: IntoIterator<Item = (T, i64)>>(rows: I) -> Self {
        let mut found = 0;
        let rows = rows.into_iter().map(|(row, number)| {
            found = number;
            row
        });
        Self {
            rows: rows.collect(),
            found,
        }
    }
}

/// Loads the first rows of an ordered query, until a row exceeds the limit. `size` is an SQL expression: the bytes of a
/// row of `page`, which has the query's columns.
///
/// Postgres leaves out the rest before it reads their values, so `size` should measure texts by `octet_length`,
/// which does not read them either.
///
/// # Errors
/// The statement fails.
pub fn load_limited<'query, T, Q>(
    connection: &mut PgConnection,
    query: Q,
    size: impl Into<String>,
    limit: RowLimit,
) -> QueryResult<LimitedRows<T>>
where
    Limited<Q>: LoadQuery<'query, PgConnection, (T, i64, i64, i64)>,
{
    let limited = Limited {
        query,
        size: size.into(),
        limit,
    };
    let rows: Vec<(T, i64, i64, i64)> = limited.load(connection)?;
    let rows = rows.into_iter().map(|(row, found, ..)| (row, found));
    Ok(rows.collect())
}

/// The statement of [`load_limited`] for a query that is text. `rows` and `bytes` are placeholders of the limit.
/// The column `found` is [`LimitedRows::found`].
#[must_use]
pub fn limited_sql(query: &str, size: &str, rows: &str, bytes: &str) -> String {
    format!(
        "{}{query}{WHERE_ROWS}{rows}{AND_BYTES}{bytes}{ORDER}",
        select(size)
    )
}

/// A query with an ordered subquery keeps its order in window functions that have no order of their own.
fn select(size: &str) -> String {
    format!(
        "SELECT * FROM (SELECT page.*, count(*) OVER () AS found, row_number() OVER up_to_here AS number, \
         sum(({size})::integer) OVER up_to_here AS size_so_far FROM ("
    )
}

const WHERE_ROWS: &str = ") AS page WINDOW up_to_here AS (ROWS UNBOUNDED PRECEDING)) AS limited \
                          WHERE number = 1 OR (number <= ";
const AND_BYTES: &str = " AND size_so_far <= ";
const ORDER: &str = ") ORDER BY number";

/// The statement of [`load_limited`].
#[derive(Debug, Clone)]
pub struct Limited<Q> {
    query: Q,
    size: String,
    limit: RowLimit,
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Limited<Q> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(&select(&self.size));
        self.query.walk_ast(out.reborrow())?;
        out.push_sql(WHERE_ROWS);
        out.push_bind_param::<BigInt, _>(&self.limit.rows)?;
        out.push_sql(AND_BYTES);
        out.push_bind_param::<BigInt, _>(&self.limit.bytes)?;
        out.push_sql(ORDER);
        Ok(())
    }
}

impl<Q> QueryId for Limited<Q> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for Limited<Q> {
    type SqlType = (Q::SqlType, BigInt, BigInt, BigInt);
}

impl<Q> RunQueryDsl<PgConnection> for Limited<Q> {}
