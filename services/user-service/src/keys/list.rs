use database::{Connection, Error};
use values::UserId;

use super::requests::AllKeysQuery;
use super::store::{self, Key};
use crate::accounts;
use crate::context::Context;

/// The keys of a user, the newest first.
pub(super) async fn list(context: &Context, user: UserId) -> Result<Vec<Key>, Error> {
    let load = move |connection: &mut Connection| store::of_user(connection, user);
    context.database.run(load).await
}

/// The keys of a user, if the user exists.
pub(super) async fn list_of(context: &Context, user: UserId) -> Result<Option<Vec<Key>>, Error> {
    let load = move |connection: &mut Connection| {
        let exists = accounts::store::find(connection, user)?.is_some();
        exists.then(|| store::of_user(connection, user)).transpose()
    };
    context.database.run(load).await
}

/// A page of the keys of all users, with the usernames.
pub(super) async fn list_all(
    context: &Context,
    query: AllKeysQuery,
) -> Result<Vec<(Key, String)>, Error> {
    let load = move |connection: &mut Connection| store::of_all(connection, query);
    context.database.run(load).await
}
