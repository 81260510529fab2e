use std::time::Duration;

use chrono::{DateTime, Utc};
use values::{Secret, UserId};

const PLACE_OF_CODE: &str = "{{code}}";

/// Why a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Somebody forgot the password: the code sets a new one.
    ForgotPassword,
    /// An e-mail address is new: the code confirms it.
    VerifyEmail,
}

impl Kind {
    /// The name in the database, and the purpose of the code.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ForgotPassword => "forgot-password",
            Self::VerifyEmail => "verify-email",
        }
    }

    /// The kind of a name; `None` for one that this version does not know.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let all = [Self::ForgotPassword, Self::VerifyEmail];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the code holds for the recipient's present e-mail address only.
    pub(crate) fn confirms_address(self) -> bool {
        matches!(self, Self::VerifyEmail)
    }
}

/// What links look like and how long codes last.
#[derive(Debug, Clone)]
pub(crate) struct CodeSettings {
    /// With `{{code}}` where the code goes.
    pub(crate) forgot_password: String,
    /// With `{{code}}` where the code goes.
    pub(crate) verify_email: String,
    pub(crate) lifetime: Duration,
}

impl CodeSettings {
    pub(crate) fn link(&self, kind: Kind, code: &Secret) -> Secret {
        let template = match kind {
            Kind::ForgotPassword => &self.forgot_password,
            Kind::VerifyEmail => &self.verify_email,
        };
        Secret::new(template.replace(PLACE_OF_CODE, code.expose()))
    }
}

/// One message, ready to be sent.
pub(crate) struct Notice {
    pub(crate) kind: Kind,
    pub(crate) user: UserId,
    pub(crate) email: String,
    /// When the message was asked for.
    pub(crate) created: DateTime<Utc>,
    pub(crate) code: Secret,
    pub(crate) link: Secret,
    /// How long the code is valid.
    pub(crate) lifetime: Duration,
}
