//! Who decides a task whose creator restricts that.

use auth::{Caller, EmailVerification};

use crate::mailing::Mailing;
use crate::settings::DeciderSettings;
use crate::status::Deciders;
use crate::tasks::error::TaskError;
use crate::tasks::requests::CreateTaskRequest;

/// Whether not everyone decides a task with these fields who may by default. Its creator is then told a secret that only
/// opens it.
pub(crate) fn is_restricted(deciders: Option<Deciders>, self_approval: bool) -> bool {
    deciders.is_some() || !self_approval
}

impl CreateTaskRequest {
    /// Checks that those can decide who shall.
    ///
    /// # Errors
    /// [`TaskError::Unavailable`], with the name of the setting that is missing.
    pub(crate) fn check_deciders(
        &self,
        settings: DeciderSettings,
        mailing: &Mailing,
        creator: &Caller,
    ) -> Result<(), TaskError> {
        if !is_restricted(self.deciders, self.self_approval) {
            return Ok(());
        }
        let field = self.deciders.map_or("selfApproval", |_| "deciders");
        if settings.email_verification == EmailVerification::Off {
            let message = "Cannot be restricted, because EMAIL_VERIFICATION is not `required`: anyone could sign up with the approver's address.";
            return Err(TaskError::Unavailable(field, message));
        }
        let is_mailed = mailing.keys_for(self.notify).is_some();
        if self.deciders == Some(Deciders::Approver) && !is_mailed {
            let message = "Needs mail to the approver: send `notify: true`, for which TASK_MAIL_KEY must be set.";
            return Err(TaskError::Unavailable("deciders", message));
        }
        let approver = Some(self.approver.normalized());
        let is_own = approver == Some(self.requester.normalized())
            || approver == creator.normalized_email().as_deref();
        if !self.self_approval && is_own {
            let message =
                "The approver is who requests or creates the task, so no one could decide it.";
            return Err(TaskError::Unavailable("selfApproval", message));
        }
        Ok(())
    }
}
