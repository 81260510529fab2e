use app_config::Error;
use auth::EmailVerification;

use crate::settings::PeopleTaskServiceSettings;
use crate::status::Deciders;

app_config::settings! {
    /// Who decides tasks whose creators do not say.
    #[derive(Copy)]
    pub struct DeciderSettings {
        /// The setting of the user-service, which this service needs to know because only confirmed addresses can say who
        /// the approver of a task is. Give both the same.
        pub email_verification: EmailVerification = or_default("EMAIL_VERIFICATION", "off"),
        /// Who decides tasks: with `any` also their creators and administrators, unless a task has `deciders`; with `approver`
        /// only their approvers, signed in or by the link that is mailed to them. It requires EMAIL_VERIFICATION and TASK_MAIL.
        pub by_default: TaskDeciders = or_default("TASK_DECIDERS", "any"),
    }
}

values::names! {
    /// Who decides tasks whose creators do not say.
    pub enum TaskDeciders {
        /// The approver, the creator and administrators.
        Any = "any",
        /// The approver.
        Approver = "approver",
    }
}

app_config::named_settings! {
    TaskDeciders, "`any` or `approver`", "any";
}

impl DeciderSettings {
    /// What tasks have whose creators do not say who decides.
    pub(crate) fn by_default(self) -> Option<Deciders> {
        match self.by_default {
            TaskDeciders::Any => None,
            TaskDeciders::Approver => Some(Deciders::Approver),
        }
    }

    /// Checks that approvers can decide if only they may.
    pub(super) fn check(settings: &PeopleTaskServiceSettings) -> Result<(), Error> {
        let deciders = settings.deciders;
        let reason = match deciders.by_default {
            TaskDeciders::Any => return Ok(()),
            TaskDeciders::Approver if deciders.email_verification == EmailVerification::Off => {
                "EMAIL_VERIFICATION is not `required`, so anyone could sign up with an approver's address"
            }
            TaskDeciders::Approver if !settings.mails.by_default => {
                "TASK_MAIL is off, so approvers would get no link"
            }
            TaskDeciders::Approver => return Ok(()),
        };
        Err(Error::Invalid {
            name: "TASK_DECIDERS",
            given: "`approver`".to_owned(),
            reason: reason.to_owned(),
            allowed: "`any`, or set those as well",
        })
    }
}
