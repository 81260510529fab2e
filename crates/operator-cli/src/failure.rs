use std::process::ExitCode;

/// Why a command did not do what it was asked. Each kind has an exit code of its own.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit code 1: something does not work, or is unhealthy.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
    /// Exit code 2: the arguments do not make sense together.
    #[error("{0}")]
    Usage(String),
    /// Exit code 3: there is no such user, task, delivery or deletion.
    #[error("{0}")]
    NotFound(String),
    /// Exit code 4: the credentials do not allow it, or it was not confirmed.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    pub(crate) const USAGE: u8 = 2;

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => Self::USAGE,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
        })
    }
}

impl From<app_config::Error> for Failure {
    fn from(error: app_config::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// What a command returns.
pub(crate) type Outcome = Result<(), Failure>;
