//! The statements that insert rows. They are written by hand, because the DSL has no common table
//! expressions. Addresses are bound as text, because the DSL knows `inet` only with another crate.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Binary, Jsonb, Nullable, Text};
use diesel::{PgConnection, QueryResult, RunQueryDsl};

use crate::Entry;

const INSERT: &str = "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, \
                      proof, client_address, request_id, detail) ";

impl Entry {
    /// Inserts the row. Call it in the transaction that makes the change.
    ///
    /// # Errors
    /// The database fails.
    pub fn record(&self, connection: &mut PgConnection) -> QueryResult<()> {
        Insertion(self).execute(connection)?;
        Ok(())
    }

    /// Extends a statement that makes a change, so that it inserts this row in the same round trip. It inserts
    /// none if the statement returns no rows.
    pub fn record_with<Statement>(self, statement: Statement) -> RecordWith<Statement> {
        RecordWith {
            statement,
            also: (),
            entry: self,
        }
    }

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
        out.push_bind_param::<Nullable<Text>, _>(&self.auth_method)?;
        out.push_sql(", CAST(");
        out.push_bind_param::<Nullable<Text>, _>(&self.client_address)?;
        out.push_sql(" AS inet), ");
        out.push_bind_param::<Text, _>(&self.request_id)?;
        out.push_sql(", ");
        out.push_bind_param::<Nullable<Jsonb>, _>(&self.detail)
    }
}

/// Inserts one row.
#[derive(Debug)]
struct Insertion<'a>(&'a Entry);

impl QueryId for Insertion<'_> {
    type QueryId = Insertion<'static>;

    // The text is constant, so each connection prepares it once.
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

/// A statement that makes a change and inserts its row. It returns what the statement returns.
#[derive(Debug, QueryId)]
pub struct RecordWith<Statement, Also = ()> {
    statement: Statement,
    also: Also,
    entry: Entry,
}

impl<Statement> RecordWith<Statement> {
    /// Runs a second data-modifying statement with the first one. It can read what the first one returns from
    /// the table `changed`, and has the same parameters.
    pub fn also_run(self, sql: &'static str) -> RecordWith<Statement, SecondStatement> {
        RecordWith {
            statement: self.statement,
            also: SecondStatement(sql),
            entry: self.entry,
        }
    }
}

impl<Statement, Also> QueryFragment<Pg> for RecordWith<Statement, Also>
where
    Statement: QueryFragment<Pg>,
    Also: QueryFragment<Pg>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH changed AS (");
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql("), logged AS (");
        out.push_sql(INSERT);
        out.push_sql("SELECT ");
        self.entry.push_values(&mut out)?;
        out.push_sql(" FROM changed LIMIT 1)");
        self.also.walk_ast(out.reborrow())?;
        out.push_sql(" SELECT * FROM changed");
        Ok(())
    }
}

impl<Statement: Query, Also> Query for RecordWith<Statement, Also> {
    type SqlType = Statement::SqlType;
}

impl<Statement, Also> RunQueryDsl<PgConnection> for RecordWith<Statement, Also> {}

/// See [`RecordWith::also_run`].
#[derive(Debug)]
pub struct SecondStatement(&'static str);

impl QueryId for SecondStatement {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl QueryFragment<Pg> for SecondStatement {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(", second AS (");
        out.push_sql(self.0);
        out.push_sql(")");
        Ok(())
    }
}
