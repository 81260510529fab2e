use auth::Caller;
use diesel::{PgConnection, QueryResult, RunQueryDsl as _};
use serde_json::{Value, json};
use values::{TaskId, UserId};

use crate::RequestMeta;
use crate::statement::{Insertion, Recorded};

/// Who did it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A user, by a token without the scope `admin` or by something that only the user has.
    User(UserId),
    /// A user, by a token with the scope `admin`.
    Admin(UserId),
    /// One of our own processes.
    Service,
    /// Whoever holds the secret of a task's approver.
    ApproverSecret,
    /// Whoever holds the secret of a task's requester.
    RequesterSecret,
    /// Somebody who has not shown who it is.
    Anonymous,
}

impl Actor {
    fn kind(self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Admin(_) => "admin",
            Self::Service => "service",
            Self::ApproverSecret => "approver-secret",
            Self::RequesterSecret => "requester-secret",
            Self::Anonymous => "anonymous",
        }
    }

    fn id(self) -> Option<UserId> {
        match self {
            Self::User(id) | Self::Admin(id) => Some(id),
            _ => None,
        }
    }
}

impl From<&Caller> for Actor {
    fn from(caller: &Caller) -> Self {
        if caller.is_admin() {
            Self::Admin(caller.id())
        } else {
            Self::User(caller.id())
        }
    }
}

/// To whom or what it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A user.
    User(UserId),
    /// A task, its webhooks and deliveries included.
    Task(TaskId),
}

/// By what the actor was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// A user's access token.
    Token,
    /// A user's password.
    Password,
    /// A code that was sent to recover a password.
    ResetCode,
    /// A code that was sent to confirm an e-mail address.
    VerificationCode,
    /// One of a task's two secrets.
    TaskSecret,
    /// A token of one of our own processes.
    ServiceToken,
}

impl AuthMethod {
    fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Password => "password",
            Self::ResetCode => "reset-code",
            Self::VerificationCode => "verification-code",
            Self::TaskSecret => "task-secret",
            Self::ServiceToken => "service-token",
        }
    }
}

/// A row of the audit log that is about to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub(crate) action: &'static str,
    pub(crate) actor_kind: &'static str,
    pub(crate) actor_id: Option<Vec<u8>>,
    pub(crate) subject_kind: Option<&'static str>,
    pub(crate) subject_id: Option<Vec<u8>>,
    pub(crate) proof: Option<&'static str>,
    pub(crate) client_address: Option<String>,
    pub(crate) request_id: String,
    pub(crate) detail: Option<Value>,
}

impl Entry {
    /// What was done, by whom, from where. The action is one of those that the table's constraint lists.
    #[must_use]
    pub fn new(action: &'static str, actor: Actor, origin: RequestMeta) -> Self {
        Self {
            action,
            actor_kind: actor.kind(),
            actor_id: actor.id().map(|id| id.as_bytes().to_vec()),
            subject_kind: None,
            subject_id: None,
            proof: None,
            client_address: origin.client_address,
            request_id: origin.request_id,
            detail: None,
        }
    }

    /// By what the actor was let in.
    #[must_use]
    pub fn authenticated_by(mut self, proof: AuthMethod) -> Self {
        self.proof = Some(proof.name());
        self
    }

    /// To whom or what it was done.
    #[must_use]
    pub fn on(mut self, subject: Subject) -> Self {
        let (kind, id) = match subject {
            Subject::User(id) => ("user", *id.as_bytes()),
            Subject::Task(id) => ("task", *id.as_bytes()),
        };
        self.subject_kind = Some(kind);
        self.subject_id = Some(id.to_vec());
        self
    }

    /// The names of the fields that changed.
    #[must_use]
    pub fn fields(self, names: &[&str]) -> Self {
        self.detail(json!({ "fields": names }))
    }

    /// What else there is to say: identifiers, numbers and fixed words, never what somebody typed.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.detail = Some(detail);
        self
    }

    /// The statement that makes the change, with this row in it: one round trip, and no row when the
    /// statement returns none.
    pub fn with<Q>(self, statement: Q) -> Recorded<Q> {
        Recorded::new(statement, self)
    }

    /// Writes the row, in the transaction that makes the change.
    ///
    /// # Errors
    /// Only the database can fail.
    pub fn record(&self, connection: &mut PgConnection) -> QueryResult<()> {
        Insertion(self).execute(connection)?;
        Ok(())
    }
}
