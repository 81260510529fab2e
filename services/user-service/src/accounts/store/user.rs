use auth::ADMIN_SCOPE;
use chrono::{DateTime, Utc};
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::sql_types::{Nullable, Timestamptz};
use diesel::{Queryable, QueryableByName, Selectable};
use serde_json::{Map, Value};
use values::{EmailAddress, UserId};

use crate::schema::{database_incarnation, users};

/// The time of the last sign-in of a row of `users`. It is in a table of its own.
pub(super) const LAST_SIGN_IN: &str = "(SELECT at FROM last_sign_ins WHERE user_id = users.id)";

/// An account, without its password.
#[derive(Debug, Clone, Queryable, QueryableByName, Selectable)]
#[diesel(table_name = users, check_for_backend(diesel::pg::Pg))]
pub(crate) struct User {
    pub(crate) id: UserId,
    pub(crate) username: EmailAddress,
    pub(crate) email: EmailAddress,
    pub(crate) is_active: bool,
    pub(crate) plan: String,
    pub(crate) scope: Vec<String>,
    pub(crate) vendor: Option<Value>,
    pub(crate) allowed_private_components: Vec<String>,
    pub(crate) metadata: Value,
    /// When the present address was confirmed by a code.
    pub(crate) email_confirmed: Option<DateTime<Utc>>,
    pub(crate) epoch: i64,
    pub(crate) created: DateTime<Utc>,
    pub(crate) mtime: DateTime<Utc>,
    #[diesel(select_expression = sql::<Nullable<Timestamptz>>(LAST_SIGN_IN))]
    #[diesel(select_expression_type = SqlLiteral<Nullable<Timestamptz>>)]
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub(crate) last_sign_in: Option<DateTime<Utc>>,
    pub(crate) deletion_in_progress: bool,
    /// Whether it is a service account: it has no password, and acts only with API keys.
    pub(crate) is_service: bool,
}

/// An account for which a token is issued, with the incarnation of the database: both must come from the same
/// statement.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = users, check_for_backend(diesel::pg::Pg))]
pub(crate) struct TokenSubject {
    #[diesel(embed)]
    pub(crate) user: User,
    #[diesel(select_expression = database_incarnation())]
    pub(crate) incarnation: String,
    /// What the accounts have in common that strangers made from one client network.
    pub(crate) account_group: Option<Vec<u8>>,
}

impl User {
    /// Whether the user is one of the administrators who can sign in, of whom at least one must remain.
    pub(crate) fn is_active_admin(&self) -> bool {
        self.is_active && !self.is_service && self.scope.iter().any(|scope| scope == ADMIN_SCOPE)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewUser {
    pub(crate) id: UserId,
    pub(crate) username: EmailAddress,
    pub(crate) email: EmailAddress,
    pub(crate) password_hash: String,
    pub(crate) is_active: bool,
    pub(crate) plan: String,
    pub(crate) scope: Vec<String>,
    pub(crate) vendor: Option<Value>,
    pub(crate) metadata: Map<String, Value>,
    /// Whether the address needs no code, because the operator chose it.
    pub(crate) email_confirmed: bool,
    pub(crate) is_service: bool,
}
