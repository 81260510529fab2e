//! What the audit log of tasks holds. Each capability writes its rows with its changes; here are the
//! names of actions, and the administrators' view.

pub(crate) mod routes;

use audit_log::{AuthMethod, Entry, RequestMeta, Subject};
use values::UserId;

use crate::tasks::Task;
use crate::tasks::access::{self, Actor};

/// What can be done to a task, as the log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    TaskCreated,
    TaskEdited,
    TaskApproved,
    TaskRejected,
    WebhookRegistered,
    WebhookRemoved,
    DeliveryRedelivered,
    UserErased,
}

impl Action {
    /// The name, which the table's constraint lists.
    fn name(self) -> &'static str {
        match self {
            Self::TaskCreated => "task-created",
            Self::TaskEdited => "task-edited",
            Self::TaskApproved => "task-approved",
            Self::TaskRejected => "task-rejected",
            Self::WebhookRegistered => "webhook-registered",
            Self::WebhookRemoved => "webhook-removed",
            Self::DeliveryRedelivered => "delivery-redelivered",
            Self::UserErased => "user-erased",
        }
    }

    /// A row that says that somebody did this to a task. What was needed for it says by what the actor
    /// was let in.
    pub(crate) fn entry(
        self,
        actor: &Actor,
        task: &Task,
        needed: access::Action,
        origin: RequestMeta,
    ) -> Entry {
        let (who, proof) = actor.proof_for(task, needed);
        Entry::new(self.name(), who, origin)
            .authenticated_by(proof)
            .on(Subject::Task(task.id))
    }

    /// A row about a task that is about to be; its creator has a token.
    pub(crate) fn entry_of_creator(self, creator: audit_log::Actor, origin: RequestMeta) -> Entry {
        Entry::new(self.name(), creator, origin).authenticated_by(AuthMethod::Token)
    }

    /// A row that says what one of our own processes did to what a user left behind.
    pub(crate) fn entry_of_service(self, user: UserId, origin: RequestMeta) -> Entry {
        Entry::new(self.name(), audit_log::Actor::Service, origin)
            .authenticated_by(AuthMethod::ServiceToken)
            .on(Subject::User(user))
    }
}
