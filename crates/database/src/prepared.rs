//! Raw statements, and values that they take.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use diesel::data_types::PgInterval;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Untyped};
use diesel::{PgConnection, QueryResult, RunQueryDsl};

/// A raw statement that each connection prepares once.
///
/// [`diesel::sql_query`] has its statement parsed and planned at every call, which takes longer than running
/// a statement of several data-modifying CTEs. Connections cache a prepared statement for every text, so
/// texts must be constants.
pub fn prepared(sql: &'static str) -> Prepared<()> {
    composed(sql, (), true)
}

/// A raw statement that is put together from parts. Connections prepare it once if it `is_cached`, which must be so
/// for few texts only: each connection keeps them for ever.
pub fn composed<Values>(
    sql: impl Into<Cow<'static, str>>,
    values: Values,
    is_cached: bool,
) -> Prepared<Values> {
    Prepared {
        sql: sql.into(),
        values,
        is_cached,
        columns: PhantomData,
    }
}

/// See [`prepared`]. Its rows are read by the names of their columns, unless it is [`Prepared::returning`] some.
#[derive(Debug, Clone)]
#[must_use = "a statement does nothing until it is executed"]
pub struct Prepared<Values, Columns = Untyped> {
    sql: Cow<'static, str>,
    values: Values,
    is_cached: bool,
    columns: PhantomData<Columns>,
}

/// A list of values, and one more.
#[derive(Debug, Clone)]
pub struct And<Values, SqlType, Value> {
    values: Values,
    value: Value,
    sql_type: PhantomData<SqlType>,
}

impl<Values> Prepared<Values> {
    /// Binds the next parameter: `$1`, then `$2`, and so on.
    pub fn bind<SqlType, Value>(self, value: Value) -> Prepared<And<Values, SqlType, Value>> {
        Prepared {
            sql: self.sql,
            values: And {
                values: self.values,
                value,
                sql_type: PhantomData,
            },
            is_cached: self.is_cached,
            columns: PhantomData,
        }
    }

    /// Reads rows in the order of their columns, which have these types: a single value, or a tuple.
    pub fn returning<Columns>(self) -> Prepared<Values, Columns> {
        Prepared {
            sql: self.sql,
            values: self.values,
            is_cached: self.is_cached,
            columns: PhantomData,
        }
    }
}

impl<Values, SqlType, Value> QueryFragment<Pg> for And<Values, SqlType, Value>
where
    Pg: HasSqlType<SqlType>,
    Values: QueryFragment<Pg>,
    Value: ToSql<SqlType, Pg>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.values.walk_ast(out.reborrow())?;
        out.push_bind_param(&self.value)
    }
}

impl<Values: QueryFragment<Pg>, Columns> QueryFragment<Pg> for Prepared<Values, Columns> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // diesel writes a placeholder for every bound value. The placeholders go into a comment, so that the
        // statement itself can use its parameters in any order and more than once.
        out.push_sql("/* ");
        self.values.walk_ast(out.reborrow())?;
        out.push_sql(" */ ");
        out.push_sql(&self.sql);
        if !self.is_cached {
            out.unsafe_to_cache_prepared();
        }
        Ok(())
    }
}

impl<Values, Columns> QueryId for Prepared<Values, Columns> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Values, Columns> Query for Prepared<Values, Columns> {
    type SqlType = Columns;
}

impl<Values, Columns> RunQueryDsl<PgConnection> for Prepared<Values, Columns> {}

/// A duration as an SQL interval, to be added to the database's clock, which all replicas share.
pub fn interval(duration: Duration) -> PgInterval {
    PgInterval::from_microseconds(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

/// A column of rows, in their order, for a statement that takes many rows as arrays.
pub fn column<'a, Row, T>(rows: &'a [Row], value: impl Fn(&'a Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
