//! Limits requests for codes: by e-mail address, so that one mailbox is not flooded, and by client
//! network, so that one client cannot flood many mailboxes.
//!
//! The counts are in the database, so all replicas share them. Requests for unknown addresses count, too,
//! so the limit does not reveal which addresses exist. The exception are the networks from which the user of an address has
//! signed in: they have a higher limit and a count of their own, so they tell that it exists to those who know it.

pub(crate) mod store;

use std::time::Duration;

use database::{Connection, Error};
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, Names as _};

use crate::back_off::name_hash;
use crate::client_network::ClientNetwork;
use crate::error::UserError;
use crate::notifications::Kind;
use crate::settings::CodeRequestSettings;
use store::LimitScope;

/// What the requests for codes of a kind to an e-mail address are counted by. Requests to confirm an address count
/// separately, because anyone can request codes for a forgotten password, but only the user can request these.
fn mailbox_hash(kind: Kind, email: &str) -> [u8; 32] {
    match kind {
        Kind::ForgotPassword => name_hash(email),
        Kind::VerifyEmail => Sha256::digest(format!("{} {email}", kind.name())).into(),
    }
}

/// How many times as many codes as from anywhere can be requested from one network from which the user has signed in. It may
/// be that of a stranger who signed up with another person's address.
const KNOWN_NETWORK_FACTOR: u32 = 3;

/// Counts a request for a code. If the request exceeds a limit, returns how long to wait, and the caller must roll back
/// the transaction, so that the request does not count. If the user with the address has signed in from the client's network,
/// requests from there have a count of their own, so that strangers cannot use it up.
pub(crate) fn count_code_request(
    connection: &mut Connection,
    limits: CodeRequestSettings,
    kind: Kind,
    email: &EmailAddress,
    client: &ClientNetwork,
    from_known_network: bool,
) -> Result<Option<Duration>, Error> {
    let (mut mailbox, mut per_account) =
        (mailbox_hash(kind, email.normalized()), limits.per_account);
    if from_known_network {
        let own = Sha256::new().chain_update(mailbox);
        mailbox = own.chain_update(client.as_str()).finalize().into();
        per_account *= KNOWN_NETWORK_FACTOR;
    }
    // Always in this order, so that two transactions cannot deadlock.
    if let Some(wait) = count_client(connection, limits, client)? {
        return Ok(Some(wait));
    }
    store::count(connection, LimitScope::Account, mailbox, per_account)
}

/// Counts a mail that a client causes by something else than a request for a code, as one of the client's. `false` if it exceeds
/// the limit: then it must not be sent, and does not count.
pub(crate) fn count_mail(
    connection: &mut Connection,
    limits: CodeRequestSettings,
    client: &ClientNetwork,
) -> Result<bool, UserError> {
    let count = |connection: &mut Connection| {
        let wait = count_client(connection, limits, client)?;
        wait.map_or(Ok(()), |wait| Err(UserError::TooManyCodes(wait)))
    };
    match database::transaction(connection, count) {
        Err(UserError::TooManyCodes(_)) => Ok(false),
        counted => counted.map(|()| true),
    }
}

/// Counts what causes a mail as one of the client's requests. If it exceeds the limit, returns how long to wait, and the caller
/// must roll back.
pub(crate) fn count_client(
    connection: &mut Connection,
    limits: CodeRequestSettings,
    client: &ClientNetwork,
) -> Result<Option<Duration>, Error> {
    let client = Sha256::digest(client.as_str()).into();
    store::count(connection, LimitScope::Client, client, limits.per_client)
}
