//! Who decides a task whose creator restricts that.

use auth::{Caller, EmailVerification};

use crate::mailing::Mailing;
use crate::settings::DeciderSettings;
use crate::status::Deciders;
use crate::tasks::requests::CreateTaskRequest;
use crate::tasks::store::Task;

/// What an actor has to decide a task with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Claim {
    /// The confirmed address of the approver, who is a person.
    pub(super) address: bool,
    /// The secret of the approver's link.
    pub(super) link: bool,
    /// The right of an administrator who wants to override `deciders`.
    pub(super) overrides: bool,
    /// The actor created or requested the task.
    pub(super) is_own: bool,
}

impl Task {
    /// Whether not everyone decides the task who may by default. Its creator is then told a secret that only opens it.
    pub(crate) fn is_restricted(&self) -> bool {
        is_restricted(self.deciders, self.self_approval)
    }

    /// Whether the actor does not decide this task, although approvers, creators and administrators may by default.
    pub(super) fn bars(&self, claim: Claim) -> bool {
        let is_named = match self.deciders {
            None => true,
            Some(Deciders::Approver) => claim.address || claim.link || claim.overrides,
            Some(Deciders::SignedIn) => claim.address || claim.overrides,
        };
        !is_named || (claim.is_own && !self.self_approval)
    }
}

/// Whether a task with these fields is restricted.
pub(crate) fn is_restricted(deciders: Option<Deciders>, self_approval: bool) -> bool {
    deciders.is_some() || !self_approval
}

impl CreateTaskRequest {
    /// Checks that those can decide who shall.
    ///
    /// # Errors
    /// The field, and what it lacks, with the name of the setting.
    pub(crate) fn check_deciders(
        &self,
        settings: DeciderSettings,
        mailing: &Mailing,
        creator: &Caller,
    ) -> Result<(), (&'static str, &'static str)> {
        if !is_restricted(self.deciders, self.self_approval) {
            return Ok(());
        }
        let field = if self.deciders.is_some() {
            "deciders"
        } else {
            "selfApproval"
        };
        if settings.email_verification == EmailVerification::Off {
            let message = "Cannot be restricted, because EMAIL_VERIFICATION is not `required`: anyone could sign up with the approver's address.";
            return Err((field, message));
        }
        let is_mailed = mailing.keys_for(self.notify).is_some();
        if self.deciders == Some(Deciders::Approver) && !is_mailed {
            let message = "Needs mail to the approver: send `notify: true`, for which TASK_MAIL_KEY must be set.";
            return Err(("deciders", message));
        }
        let approver = self.approver.normalized();
        let own = [
            Some(self.requester.normalized().to_owned()),
            creator.normalized_email(),
        ];
        if !self.self_approval && own.iter().flatten().any(|address| address == approver) {
            let message =
                "The approver is who requests or creates the task, so no one could decide it.";
            return Err(("selfApproval", message));
        }
        Ok(())
    }
}
