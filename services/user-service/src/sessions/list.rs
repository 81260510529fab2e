use database::{Connection, Error};
use values::UserId;

use crate::context::Context;
use crate::credentials::CredentialKind;
use crate::credentials::store::{self, Credential};

/// The sessions of a user, the one that was used last first.
pub(super) async fn list(context: &Context, user: UserId) -> Result<Vec<Credential>, Error> {
    let load = move |connection: &mut Connection| {
        store::of_user(connection, user, CredentialKind::Session)
    };
    context.database.run(load).await
}
