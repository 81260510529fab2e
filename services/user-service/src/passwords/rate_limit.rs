//! Limits requests for codes: by e-mail address, so that one mailbox is not flooded, and by client
//! network, so that one client cannot flood many mailboxes.
//!
//! The counts are in the database, so all replicas share them. Requests for unknown addresses count, too,
//! so the limit does not reveal which addresses exist. The limit of an address does not apply to networks from which its
//! user has signed in.

use std::time::Duration;

use database::{Connection, Error};
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, Names as _};

use super::store::{self, LimitScope};
use crate::back_off::name_hash;
use crate::client_network::ClientNetwork;
use crate::notifications::Kind;
use crate::settings::CodeRequestSettings;

/// What the requests for codes of a kind to an e-mail address are counted by. Requests to confirm an address count
/// separately, because anyone can request codes for a forgotten password, but only the user can request these.
pub(crate) fn mailbox_hash(kind: Kind, email: &str) -> [u8; 32] {
    match kind {
        Kind::ForgotPassword => name_hash(email),
        Kind::VerifyEmail => Sha256::digest(format!("{} {email}", kind.name())).into(),
    }
}

/// Counts a request for a code. If the request exceeds a limit, returns how long to wait, and the caller must roll back
/// the transaction, so that the request does not count. If the user with the address has signed in from the client's network,
/// the limit of the address does not apply, so that strangers cannot use it up.
pub(crate) fn count_code_request(
    connection: &mut Connection,
    limits: CodeRequestSettings,
    kind: Kind,
    email: &EmailAddress,
    client: &ClientNetwork,
    from_known_network: bool,
) -> Result<Option<Duration>, Error> {
    let mut mailbox = mailbox_hash(kind, email.normalized());
    if from_known_network {
        // It has a count of its own, so that the same statements run for it.
        let own = Sha256::new().chain_update(mailbox);
        mailbox = own.chain_update(client.as_str()).finalize().into();
    }
    let client = Sha256::digest(client.as_str()).into();
    // Always in this order, so that two transactions cannot deadlock.
    for (scope, subject, per_hour) in [
        (LimitScope::Client, client, limits.per_client),
        (LimitScope::Account, mailbox, limits.per_account),
    ] {
        if per_hour == 0 {
            continue;
        }
        let excess = store::count_code_request(connection, scope, subject, per_hour)?;
        let is_exempt = from_known_network && scope == LimitScope::Account;
        if let Some(wait) = excess.filter(|_| !is_exempt) {
            metrics::counter!("code_requests_refused_total", "counted" => scope.name())
                .increment(1);
            return Ok(Some(wait));
        }
    }
    Ok(None)
}
