//! The statements that insert rows. They are written by hand, because the DSL has no common table expressions.

use database::{Connection, Error};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Bool, Jsonb};
use diesel::{IntoSql as _, QueryResult, RunQueryDsl};
use serde_json::Value;

use crate::Entry;

/// The text of a statement that inserts the entries that `$select` returns, in the column `entry`, in the form of
/// [`Entry::to_json`].
#[macro_export]
macro_rules! insert_entries {
    ($select:literal) => {
        concat!(
            "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, proof, client_address,
                request_id, detail)
            SELECT field.action, field.actor_kind, decode(field.actor_id, 'hex'), field.subject_kind,
                decode(field.subject_id, 'hex'), field.proof, field.client_address, field.request_id,
                nullif(field.detail, 'null')
            FROM (",
            $select,
            ") AS changed CROSS JOIN jsonb_to_record(changed.entry) AS field (action text, actor_kind text,
                actor_id text, subject_kind text, subject_id text, proof text, client_address inet, request_id text,
                detail jsonb)"
        )
    };
}

impl Entry {
    /// Inserts the row. Call it in the transaction that makes the change.
    ///
    /// # Errors
    /// The database fails.
    pub fn record(&self, connection: &mut Connection) -> Result<(), Error> {
        let insert = RecordWith {
            statement: diesel::select(true.into_sql::<Bool>()),
            entry: self.to_json(),
        };
        insert.execute(connection)?;
        Ok(())
    }

    /// Wraps a whole statement that makes a change, so that it also inserts this row in the same round trip. It
    /// inserts none if the statement returns no rows.
    pub fn record_with<Statement>(self, statement: Statement) -> RecordWith<Statement> {
        RecordWith {
            statement,
            entry: self.to_json(),
        }
    }
}

/// A statement that makes a change and inserts its row. It returns what the statement returns.
#[derive(Debug, QueryId)]
pub struct RecordWith<Statement> {
    statement: Statement,
    entry: Value,
}

impl<Statement: QueryFragment<Pg>> QueryFragment<Pg> for RecordWith<Statement> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH changed AS (");
        self.statement.walk_ast(out.reborrow())?;
        out.push_sql("), given AS (SELECT ");
        out.push_bind_param::<Jsonb, _>(&self.entry)?;
        out.push_sql(concat!(
            " AS entry), logged AS (",
            insert_entries!("SELECT entry FROM given WHERE EXISTS (SELECT FROM changed)"),
            ") SELECT * FROM changed"
        ));
        Ok(())
    }
}

impl<Statement: Query> Query for RecordWith<Statement> {
    type SqlType = Statement::SqlType;
}

impl<Statement> RunQueryDsl<Connection> for RecordWith<Statement> {}
