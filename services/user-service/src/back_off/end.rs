use database::{Connection, Error};
use values::{EmailAddress, UserId};

use super::attempt::name_hash;
use super::known_network_store::forget_networks;
use super::store;
use crate::client_network::ClientNetwork;

/// Ends the back-off of a user who has a new password. An attacker who knew the old one may have signed in with it, so
/// the networks of earlier sign-ins are forgotten, except for `kept`.
///
/// The caller has locked the user.
pub(crate) fn end_back_off(
    connection: &mut Connection,
    user: UserId,
    names: [&EmailAddress; 2],
    kept: Option<&ClientNetwork>,
) -> Result<(), Error> {
    forget_networks(connection, user, kept)?;
    store::delete_all_failures(connection, &names.map(|name| name_hash(name.normalized())))
}
