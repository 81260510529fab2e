//! The audit log of tasks: the names of its actions, and the administrators' list.

pub(crate) mod routes;

use audit_log::{Actor, AuthMethod, Entry, RequestMeta, Subject};
use values::{Names as _, TaskId};

values::names! {
    pub(crate) enum AuditAction {
        TaskCreated = "task-created",
        TaskEdited = "task-edited",
        TaskApproved = "task-approved",
        TaskRejected = "task-rejected",
        TaskCancelled = "task-cancelled",
        WebhookRegistered = "webhook-registered",
        WebhookRemoved = "webhook-removed",
        WebhookTested = "webhook-tested",
        DeliveryRedelivered = "delivery-redelivered",
        DeliveryCancelled = "delivery-cancelled",
        DeliveriesPaused = "deliveries-paused",
        DeliveriesResumed = "deliveries-resumed",
        UserErased = "user-erased",
    }
}

/// Who did something, and how the actor was authenticated.
pub(crate) type AuditIdentity = (Actor, AuthMethod);

impl AuditAction {
    pub(crate) fn by(self, (actor, method): AuditIdentity, meta: RequestMeta) -> Entry {
        Entry::new(self.name(), actor, meta).authenticated_by(method)
    }

    pub(crate) fn on_task(self, task: TaskId, by: AuditIdentity, meta: RequestMeta) -> Entry {
        self.by(by, meta).on(Subject::Task(task))
    }
}

#[cfg(test)]
mod tests {
    use testkit::{TestDatabase, assert_allowed_texts};

    use values::Names as _;

    use super::AuditAction;

    #[test]
    fn the_constraint_of_the_table_lists_the_actions() {
        let database = TestDatabase::people_task(crate::MIGRATIONS);
        let names = AuditAction::ALL.iter().map(|action| action.name());
        assert_allowed_texts(&database, "people_task", "audit_log.action", names);
    }
}
