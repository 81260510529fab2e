use diesel::prelude::*;
use serde_json::Value;
use values::EmailAddress;

use crate::accounts::change::UserChange;
use crate::schema::users;

/// The columns that a change sets to values of the request. `None` leaves a column as it is.
#[derive(AsChangeset)]
#[diesel(table_name = users)]
pub(super) struct ChangedColumns<'a> {
    username: Option<&'a str>,
    username_key: Option<&'a str>,
    email: Option<&'a str>,
    email_key: Option<&'a str>,
    password_hash: Option<&'a str>,
    is_active: Option<bool>,
    plan: Option<&'a str>,
    scope: Option<&'a [String]>,
    vendor: Option<Option<&'a Value>>,
    allowed_private_components: Option<&'a [String]>,
    metadata: Option<Value>,
}

impl<'a> From<&'a UserChange> for ChangedColumns<'a> {
    fn from(change: &'a UserChange) -> Self {
        let (username, email) = (change.username.as_ref(), change.email.as_ref());
        let components = change.allowed_private_components.as_ref();
        let metadata = change.metadata.as_ref();
        Self {
            username: username.map(EmailAddress::as_str),
            username_key: username.map(EmailAddress::normalized),
            email: email.map(EmailAddress::as_str),
            email_key: email.map(EmailAddress::normalized),
            password_hash: change.password_hash.as_deref(),
            is_active: change.is_active,
            plan: change.plan.as_ref().map(|plan| plan.0.as_str()),
            scope: change.scope.as_ref().map(|scope| scope.0.as_slice()),
            vendor: change
                .vendor
                .as_ref()
                .map(|vendor| vendor.as_ref().map(|vendor| &vendor.0)),
            allowed_private_components: components.map(|types| types.0.as_slice()),
            metadata: metadata.map(|metadata| Value::Object(metadata.0.clone())),
        }
    }
}
