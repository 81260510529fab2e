use chrono::{DateTime, Utc};
use http_kit::{Fields, Problem};
use values::{EmailAddress, Timestamp};

/// A user as the user service knows it.
#[derive(Debug)]
pub(crate) struct ChangedUser {
    pub(crate) changed: DateTime<Utc>,
    pub(crate) is_active: bool,
    pub(crate) is_admin: bool,
    /// The address that gives rights to tasks; `None` if it is not confirmed.
    pub(crate) email: Option<EmailAddress>,
}

impl ChangedUser {
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let changed: Option<Timestamp> = fields.required("changed");
        let is_active = fields.required("isActive");
        let is_admin = fields.required("isAdmin");
        let email = fields.optional("email");
        let user = changed.zip(is_active).zip(is_admin);
        let user = user.map(|((Timestamp(changed), is_active), is_admin)| Self {
            changed,
            is_active,
            is_admin,
            email,
        });
        fields.finish_with(user)
    }
}
