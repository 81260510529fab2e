//! The statements that write rows. They are made by hand, because the DSL has no common table
//! expressions; the addresses travel as text, because the DSL knows `inet` only with another crate.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Binary, Jsonb, Nullable, Text};
use diesel::{PgConnection, QueryResult, RunQueryDsl};

use crate::Entry;

const INSERT: &str = "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, \
                      proof, client_address, request_id, detail) ";

impl Entry {
    /// The row's values, in the order of [`INSERT`].
    fn push_values<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_bind_param::<Text, _>(&self.action)?;
        out.push_sql(", ");
        out.push_bind_param::<Text, _>(&self.actor_kind)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Binary>, _>(&self.actor_id)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Text>, _>(&self.subject_kind)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Binary>, _>(&self.subject_id)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Text>, _>(&self.proof)?;
        out.push_sql(", CAST(");
        out.push_bind_param::<Nullable<Text>, _>(&self.client_address)?;
        out.push_sql(" AS inet), ");
        out.push_bind_param::<Text, _>(&self.request_id)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Jsonb>, _>(&self.detail)
    }
}

/// Writes one row.
#[derive(Debug)]
pub(crate) struct Insertion<'a>(pub(crate) &'a Entry);

impl QueryId for Insertion<'_> {
    type QueryId = Insertion<'static>;

    // The text is always the same, so it is prepared once for each connection.
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<Pg> for Insertion<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(INSERT);
        out.push_sql("VALUES (");
        self.0.push_values(&mut out)?;
        out.push_sql(")");
        Ok(())
    }
}

impl RunQueryDsl<PgConnection> for Insertion<'_> {}

/// A statement that changes something, with the row that says so. It returns what the statement
/// returns.
#[derive(Debug, QueryId)]
pub struct Recorded<Statement, More = ()> {
    statement: Statement,
    more: More,
    entry: Entry,
}

impl<Statement> Recorded<Statement> {
    pub(crate) fn new(statement: Statement, entry: Entry) -> Self {
        let more = ();
        Self {
            statement,
            more,
            entry,
        }
    }

    /// Runs a second writing statement with the first one. What the first one returns is the table `changed` to
    /// it, and its parameters are those of the first one.
    pub fn and(self, sql: &'static str) -> Recorded<Statement, Second> {
        Recorded {
            statement: self.statement,
            more: Second(sql),
            entry: self.entry,
        }
    }
}

impl<Statement, More> QueryFragment<Pg> for Recorded<Statement, More>
where
    Statement: QueryFragment<Pg>,
    More: QueryFragment<Pg>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH changed AS (");
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql("), logged AS (");
        out.push_sql(INSERT);
        out.push_sql("SELECT ");
        self.entry.push_values(&mut out)?;
        out.push_sql(" FROM changed LIMIT 1)");
        self.more.walk_ast(out.reborrow())?;
        out.push_sql(" SELECT * FROM changed");
        Ok(())
    }
}

impl<Statement: Query, More> Query for Recorded<Statement, More> {
    type SqlType = Statement::SqlType;
}

impl<Statement, More> RunQueryDsl<PgConnection> for Recorded<Statement, More> {}

/// A statement that runs with another one: see [`Recorded::and`].
#[derive(Debug)]
pub struct Second(&'static str);

impl QueryId for Second {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl QueryFragment<Pg> for Second {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(", second AS (");
        out.push_sql(self.0);
        out.push_sql(")");
        Ok(())
    }
}
