use audit_log::{Actor, AuthMethod, Entry, RequestMeta, Subject};
use values::{TaskId, UserId};

/// What the log can say was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditAction {
    TaskCreated,
    TaskEdited,
    TaskApproved,
    TaskRejected,
    WebhookRegistered,
    WebhookRemoved,
    DeliveryRedelivered,
    UserErased,
}

impl AuditAction {
    /// The name; the table's constraint lists the same ones.
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

    /// The entry that says who did this to a task, and how the actor was authenticated.
    pub(crate) fn on_task(
        self,
        task: TaskId,
        (actor, method): (Actor, AuthMethod),
        meta: RequestMeta,
    ) -> Entry {
        Entry::new(self.name(), actor, meta)
            .authenticated_by(method)
            .on(Subject::Task(task))
    }

    /// The entry that says that one of the system's own processes did this to a user's data.
    pub(crate) fn on_user(self, user: UserId, meta: RequestMeta) -> Entry {
        Entry::new(self.name(), Actor::Service, meta)
            .authenticated_by(AuthMethod::ServiceToken)
            .on(Subject::User(user))
    }
}
