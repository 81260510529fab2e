use http_kit::{Problem, problem_responses};
use values::Invalid;

/// Why an operation on mails failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MailError {
    /// The token of an unsubscribe link is not one that was made here, or mail is off.
    #[error("the token is invalid")]
    InvalidToken,
}

impl From<MailError> for Problem {
    fn from(error: MailError) -> Self {
        match error {
            MailError::InvalidToken => {
                let message = "Must be the token of a link in a mail.";
                Self::invalid_field("token", Invalid::new("invalid-token", message))
            }
        }
    }
}

problem_responses! {
    /// Problems of the links in mails.
    pub(crate) InvalidLink {
        MailError::InvalidToken => "The link is incomplete, or was made with a key that is no longer known.",
    }
}
