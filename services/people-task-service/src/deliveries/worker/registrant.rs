//! Whether the user who registered a webhook may still be told about its task.

use crate::deliveries::worker::due_store::Registrant;
use crate::tasks::Task;
use crate::tasks::access::{Permission, Relations};

/// The value of `webhooks.registered_as` for administrators.
const ADMINISTRATOR: &str = "administrator";

impl Registrant {
    /// How the user is related to the task, who has the right today with which the webhook was registered; `None`
    /// without that right. What the user service has reported about the user replaces what the token said then.
    ///
    /// Of a webhook of a version before 0.3.0 it is not known what gave the right, so only a deactivated account ends it.
    pub(super) fn relations(&self, task: &Task) -> Option<Relations> {
        if self.is_active == Some(false) {
            return None;
        }
        let Some(registered_as) = &self.registered_as else {
            return Some(Relations::default());
        };
        let email = match self.is_active {
            Some(_) => self.user_email.as_ref(),
            None => self.registrant_email.as_ref(),
        };
        let secret = self.registrant_secret.as_ref();
        let relations = Relations {
            creator: self.registered_by == task.creator,
            approver: email == Some(&task.approver_key) || secret == Some(&task.approver_secret),
            requester: email == Some(&task.requester_key) || secret == Some(&task.requester_secret),
            admin: self.is_admin.unwrap_or(registered_as == ADMINISTRATOR),
            ..Relations::default()
        };
        let may_be_told = relations.allow(Permission::RegisterWebhook);
        may_be_told.then_some(relations)
    }
}
