use std::marker::PhantomData;

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::serialize::ToSql;
use diesel::sql_types::{HasSqlType, Untyped};
use diesel::{PgConnection, QueryResult, RunQueryDsl};

/// A raw statement that each connection plans once.
///
/// [`diesel::sql_query`] has its statement parsed and planned at every call, which for a statement of
/// several writing CTEs takes longer than running it. Connections keep every text that they saw, so texts
/// are part of the program.
pub fn prepared(sql: &'static str) -> Prepared<()> {
    Prepared { sql, values: () }
}

/// See [`prepared`].
#[derive(Debug, Clone)]
#[must_use = "a statement does nothing until it is executed"]
pub struct Prepared<Values> {
    sql: &'static str,
    values: Values,
}

/// Values, and one more.
#[derive(Debug, Clone)]
pub struct And<Values, SqlType, Value> {
    values: Values,
    value: Value,
    sql_type: PhantomData<SqlType>,
}

impl<Values> Prepared<Values> {
    /// The value of the next parameter: of `$1`, then `$2`, and so on.
    pub fn bind<SqlType, Value>(self, value: Value) -> Prepared<And<Values, SqlType, Value>> {
        Prepared {
            sql: self.sql,
            values: And {
                values: self.values,
                value,
                sql_type: PhantomData,
            },
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

impl<Values: QueryFragment<Pg>> QueryFragment<Pg> for Prepared<Values> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // diesel writes a placeholder wherever a value is handed over. They go into a comment, so that the
        // statement itself may name its parameters in any order and more than once.
        out.push_sql("/* ");
        self.values.walk_ast(out.reborrow())?;
        out.push_sql(" */ ");
        out.push_sql(self.sql);
        Ok(())
    }
}

impl<Values> QueryId for Prepared<Values> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Values> Query for Prepared<Values> {
    type SqlType = Untyped;
}

impl<Values> RunQueryDsl<PgConnection> for Prepared<Values> {}
