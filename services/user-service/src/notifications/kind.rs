/// Why a notification is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The user forgot the password; the code sets a new one.
    ForgotPassword,
    /// The user has a new e-mail address; the code confirms it.
    VerifyEmail,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::ForgotPassword, Self::VerifyEmail];

    /// The name in the database, which is also the purpose of the code.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ForgotPassword => "forgot-password",
            Self::VerifyEmail => "verify-email",
        }
    }

    /// The kind of a name; `None` for one that this version does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
