use database::Connection;

use super::name::SignInName;
use super::store;
use crate::accounts::User;

/// Ends the back-off of a user who has a new password.
pub(crate) fn clear_failures(
    connection: &mut Connection,
    user: &User,
) -> Result<(), database::Error> {
    let names = [user.username.as_str(), user.email.as_str()];
    let hashes = names.map(|name| SignInName::new(name).name_hash());
    store::delete_all_failures(connection, &hashes)
}
