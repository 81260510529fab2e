//! The statements that insert rows. They are written by hand, because the DSL has no common table
//! expressions. Addresses are bound as text, because the DSL knows `inet` only with another crate.

use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Binary, Bool, Jsonb, Nullable, Text};
use diesel::{IntoSql as _, PgConnection, QueryResult, RunQueryDsl};
use serde_json::{Value, json};

use crate::Entry;

const INSERT: &str = "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, \
                      proof, client_address, request_id, detail) ";

impl Entry {
    /// Inserts the row. Call it in the transaction that makes the change.
    ///
    /// # Errors
    /// The database fails.
    pub fn record(&self, connection: &mut PgConnection) -> QueryResult<()> {
        let no_change = diesel::select(true.into_sql::<Bool>());
        self.clone().record_with(no_change).execute(connection)?;
        Ok(())
    }

    /// Wraps a whole statement that makes a change, so that it also inserts this row in the same round trip. It
    /// inserts none if the statement returns no rows.
    pub fn record_with<Statement>(self, statement: Statement) -> RecordWith<Statement> {
        RecordWith {
            statement,
            entry: self,
        }
    }

    /// The entry as JSON, for a statement that has several changes and so cannot be wrapped by
    /// [`Entry::record_with`].
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "action": self.action,
            "actor_kind": self.actor_kind,
            "actor_id": self.actor_id.as_ref().map(hex::encode),
            "subject_kind": self.subject_kind,
            "subject_id": self.subject_id.as_ref().map(hex::encode),
            "proof": self.auth_method,
            "client_address": self.client_address,
            "request_id": self.request_id,
            "detail": self.detail,
        })
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

/// A statement that makes a change and inserts its row. It returns what the statement returns.
#[derive(Debug, QueryId)]
pub struct RecordWith<Statement> {
    statement: Statement,
    entry: Entry,
}

impl<Statement: QueryFragment<Pg>> QueryFragment<Pg> for RecordWith<Statement> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH changed AS (");
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql("), logged AS (");
        out.push_sql(INSERT);
        out.push_sql("SELECT ");
        self.entry.push_values(&mut out)?;
        out.push_sql(" FROM changed LIMIT 1) SELECT * FROM changed");
        Ok(())
    }
}

impl<Statement: Query> Query for RecordWith<Statement> {
    type SqlType = Statement::SqlType;
}

impl<Statement> RunQueryDsl<PgConnection> for RecordWith<Statement> {}
