use std::net::IpAddr;

use actix_web::HttpRequest;
use auth::Caller;
use database::{Connection, Error};
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};
use diesel::sql_types::{Bool, Jsonb};
use diesel::{IntoSql as _, QueryResult, RunQueryDsl};
use http_kit::forwarded_for::{TrustedProxies, client_address};
use serde::Serialize;
use serde_json::{Value, json};
use telemetry::RequestContext;
use values::{CredentialId, Names as _, TaskId, UserId};

/// Who made the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A user: by a token without the scope `admin`, a password or a code.
    User(UserId),
    /// An administrator: a user with a token that has the scope `admin`.
    Admin(UserId),
    /// A user, by an API key.
    UserKey(UserId, CredentialId),
    /// An administrator, by an API key that has the scope `admin`.
    AdminKey(UserId, CredentialId),
    /// Another process of the system.
    Service,
    /// A caller with the approver secret of the task.
    ApproverSecret,
    /// A caller with the requester secret of the task.
    RequesterSecret,
    /// An unauthenticated caller.
    Anonymous,
}

impl Actor {
    /// The kind of actor, the user, and the API key by which the user acted.
    fn parts(self) -> (&'static str, Option<UserId>, Option<CredentialId>) {
        match self {
            Self::User(id) => ("user", Some(id), None),
            Self::Admin(id) => ("admin", Some(id), None),
            Self::UserKey(id, key) => ("user", Some(id), Some(key)),
            Self::AdminKey(id, key) => ("admin", Some(id), Some(key)),
            Self::Service => ("service", None, None),
            Self::ApproverSecret => ("approver-secret", None, None),
            Self::RequesterSecret => ("requester-secret", None, None),
            Self::Anonymous => ("anonymous", None, None),
        }
    }
}

impl From<&Caller> for Actor {
    fn from(caller: &Caller) -> Self {
        match (caller.is_admin(), caller.key()) {
            (true, None) => Self::Admin(caller.id()),
            (false, None) => Self::User(caller.id()),
            (true, Some(key)) => Self::AdminKey(caller.id(), key),
            (false, Some(key)) => Self::UserKey(caller.id(), key),
        }
    }
}

/// The user or task that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A user.
    User(UserId),
    /// A task, including its webhooks and deliveries.
    Task(TaskId),
}

values::names! {
    /// How the actor was authenticated.
    pub enum AuthMethod {
        /// A user's access token.
        Token = "token",
        /// A user's password.
        Password = "password",
        /// A code to reset a password.
        ResetCode = "reset-code",
        /// A code to confirm an e-mail address.
        VerificationCode = "verification-code",
        /// A secret of the task.
        TaskSecret = "task-secret",
        /// A token of another process of the system.
        ServiceToken = "service-token",
    }
}

/// The client address and the request id of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMeta {
    client_address: Option<IpAddr>,
    request_id: String,
}

impl RequestMeta {
    /// The metadata of a request from outside.
    pub fn of(request: &HttpRequest) -> Self {
        Self {
            client_address: client_address(request, TrustedProxies::Peer),
            ..Self::internal()
        }
    }

    /// The metadata of work inside the system, such as a worker's. It has the id of the request that caused the
    /// work, if it runs in the context of that request.
    pub fn internal() -> Self {
        Self {
            client_address: None,
            request_id: RequestContext::current_or_fresh().request_id,
        }
    }

    /// The network of the client, by which it is limited: an IPv4 address, or an IPv6 /64.
    pub fn client_network(&self) -> Option<IpAddr> {
        self.client_address.map(http_kit::client_network)
    }
}

http_kit::extractors! {
    RequestMeta = |request| Ok(Self::of(&request));
}

/// A row to insert into the audit log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    action: &'static str,
    actor_kind: &'static str,
    actor_id: Option<UserId>,
    subject_kind: Option<&'static str>,
    subject_id: Option<String>,
    #[serde(rename = "proof")]
    auth_method: Option<&'static str>,
    client_address: Option<String>,
    request_id: String,
    detail: Option<Value>,
    #[serde(skip)]
    key: Option<CredentialId>,
}

impl Entry {
    /// An entry for an action, which must be one of those that the table's constraint lists. If an API key acted, the details
    /// name it as `key`.
    pub fn new(action: &'static str, actor: Actor, request: RequestMeta) -> Self {
        let (actor_kind, actor_id, key) = actor.parts();
        Self {
            action,
            actor_kind,
            actor_id,
            subject_kind: None,
            subject_id: None,
            auth_method: None,
            client_address: request.client_address.map(|address| address.to_string()),
            request_id: request.request_id,
            detail: key.map(|key| json!({ "key": key })),
            key,
        }
    }

    /// Sets how the actor was authenticated.
    #[must_use]
    pub fn authenticated_by(mut self, method: AuthMethod) -> Self {
        self.auth_method = Some(method.name());
        self
    }

    /// Sets the user or task that was changed.
    #[must_use]
    pub fn on(mut self, subject: Subject) -> Self {
        let (kind, id) = match subject {
            Subject::User(id) => ("user", id.to_string()),
            Subject::Task(id) => ("task", id.to_string()),
        };
        self.subject_kind = Some(kind);
        self.subject_id = Some(id);
        self
    }

    /// Sets the names of the fields that changed.
    #[must_use]
    pub fn fields(self, names: &[&str]) -> Self {
        self.detail(json!({ "fields": names }))
    }

    /// Sets further details: identifiers, hosts, numbers and constants, never another value from a request.
    #[must_use]
    pub fn detail(mut self, mut detail: Value) -> Self {
        if let (Some(key), Some(fields)) = (self.key, detail.as_object_mut()) {
            fields.insert("key".to_owned(), json!(key));
        }
        self.detail = Some(detail);
        self
    }

    /// The entry as JSON, for [`insert_entries!`](crate::insert_entries).
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// Inserts the row. Call it in the transaction that makes the change.
    ///
    /// # Errors
    /// The database fails.
    pub fn record(&self, connection: &mut Connection) -> Result<(), Error> {
        let nothing = diesel::select(true.into_sql::<Bool>());
        self.clone().record_with(nothing).execute(connection)?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use values::{CredentialId, UserId};

    use super::{Actor, Entry, RequestMeta};

    #[test]
    fn the_details_name_the_key_that_acted_beside_whatever_else_they_say() {
        let (user, key) = (UserId::generate(), CredentialId::generate());
        let entry = |actor| Entry::new("task-created", actor, RequestMeta::internal());
        let by_key = entry(Actor::UserKey(user, key));
        assert_eq!(by_key.detail, Some(json!({"key": key})));
        assert_eq!(by_key.actor_kind, "user");
        let detailed = by_key.fields(&["title"]).detail;
        assert_eq!(detailed, Some(json!({"fields": ["title"], "key": key})));
        assert_eq!(entry(Actor::AdminKey(user, key)).actor_kind, "admin");
        assert_eq!(entry(Actor::User(user)).detail, None);
    }
}
