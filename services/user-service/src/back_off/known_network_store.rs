//! The client networks from which users have signed in. Only hashes are stored, so that a dump of the
//! database shows no addresses.
//!
//! Every transaction that changes a user's rows locks the user first.

use database::{Connection, Error};
use diesel::dsl::{exists, not, now};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use sha2::{Digest as _, Sha256};
use values::UserId;

use crate::client_network::ClientNetwork;
use crate::schema::known_networks;

/// The networks that are kept for each user: those of the latest sign-ins.
const MAX_NETWORKS: i64 = 20;

/// Differs from user to user, so that the rows do not show who shares a network.
fn network_hash(user: UserId, client: &ClientNetwork) -> [u8; 32] {
    let hash = Sha256::new().chain_update(user.as_bytes());
    hash.chain_update(client.as_str()).finalize().into()
}

/// Whether the user has signed in from a network. The same statement runs if there is no user.
pub(crate) fn is_known_network(
    connection: &mut Connection,
    user: Option<UserId>,
    client: &ClientNetwork,
) -> Result<bool, Error> {
    // A new identifier belongs to no user.
    let user = user.unwrap_or_else(UserId::generate);
    let row = known_networks::table.find((user, network_hash(user, client).to_vec()));
    Ok(diesel::select(exists(row)).get_result(connection)?)
}

/// Records a sign-in from a network.
pub(crate) fn record_network(
    connection: &mut Connection,
    user: UserId,
    client: &ClientNetwork,
) -> Result<(), Error> {
    diesel::insert_into(known_networks::table)
        .values((
            known_networks::user_id.eq(user),
            known_networks::network_hash.eq(network_hash(user, client).as_slice()),
        ))
        .on_conflict((known_networks::user_id, known_networks::network_hash))
        .do_update()
        .set(known_networks::last_sign_in.eq(now))
        .execute(connection)?;
    // The DSL has no OFFSET in a DELETE's subquery of the same table.
    diesel::sql_query(
        "DELETE FROM known_networks WHERE user_id = $1 AND network_hash IN (\
            SELECT network_hash FROM known_networks WHERE user_id = $1 \
            ORDER BY last_sign_in DESC, network_hash OFFSET $2)",
    )
    .bind::<Binary, _>(user)
    .bind::<BigInt, _>(MAX_NETWORKS)
    .execute(connection)?;
    Ok(())
}

/// Deletes the networks of a user, except for `kept`.
pub(crate) fn forget_networks(
    connection: &mut Connection,
    user: UserId,
    kept: Option<&ClientNetwork>,
) -> Result<(), Error> {
    let kept = kept.map(|client| network_hash(user, client).to_vec());
    let forgotten = known_networks::table
        .filter(known_networks::user_id.eq(user))
        .filter(not(known_networks::network_hash.eq_any(kept)));
    diesel::delete(forgotten).execute(connection)?;
    Ok(())
}
