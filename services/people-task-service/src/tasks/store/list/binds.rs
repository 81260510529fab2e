use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::sql_types::{BigInt, Binary, Bool, Text};

/// A value that is bound to a statement.
#[derive(Debug, Clone)]
pub(super) enum Bind {
    Bytes(Vec<u8>),
    Text(String),
    Bool(bool),
    Number(i64),
}

/// The values of a statement. The statement may use each any number of times.
#[derive(Debug, Clone, Default)]
pub(super) struct Binds(Vec<Bind>);

impl Binds {
    /// Adds a value and returns its placeholder.
    pub(super) fn add(&mut self, bind: Bind) -> String {
        self.0.push(bind);
        format!("${}", self.0.len())
    }
}

impl QueryFragment<Pg> for Binds {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        for bind in &self.0 {
            match bind {
                Bind::Bytes(bytes) => out.push_bind_param::<Binary, _>(bytes)?,
                Bind::Text(text) => out.push_bind_param::<Text, _>(text)?,
                Bind::Bool(value) => out.push_bind_param::<Bool, _>(value)?,
                Bind::Number(number) => out.push_bind_param::<BigInt, _>(number)?,
            }
        }
        Ok(())
    }
}
