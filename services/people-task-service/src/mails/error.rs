use http_kit::{Problem, problem_responses};
use values::Invalid;

/// The token of an unsubscribe link is not one that was made here, or mail is off.
pub(super) fn invalid_token() -> Problem {
    let message = "Must be the token of a link in a mail.";
    Problem::invalid_field("token", Invalid::new("invalid-token", message))
}

problem_responses! {
    /// Problems of the links in mails.
    pub(crate) InvalidLink {
        invalid_token() => "The link is incomplete, or was made with a key that is no longer known.",
    }
}
