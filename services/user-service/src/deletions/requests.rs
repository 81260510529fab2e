use http_kit::{Problem, path_id};
use serde::Deserialize;
use utoipa::IntoParams;
use values::{Secret, UserId};

/// The path of a user.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(super) struct UserPath {
    /// The user's id: 24 lower-case hexadecimal digits.
    user_id: String,
}

impl UserPath {
    pub(super) fn parse(&self) -> Result<UserId, Problem> {
        path_id(&self.user_id, "user")
    }
}

/// The path of a deletion's status.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Path)]
pub(super) struct TicketPath {
    /// The user's id.
    user_id: String,
    /// The ticket of the deletion.
    ticket: String,
}

impl TicketPath {
    pub(super) fn parse(&self) -> Result<(UserId, Secret), Problem> {
        let what = "deletion ticket";
        let ticket = path_id::<String>(&self.ticket, what)?;
        Ok((path_id(&self.user_id, what)?, Secret::new(ticket)))
    }
}
