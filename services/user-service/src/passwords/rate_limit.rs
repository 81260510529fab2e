//! Limits requests for codes: by e-mail address, so that one mailbox is not flooded, and by client
//! network, so that one client cannot flood many mailboxes.
//!
//! The counts are in the database, so all replicas share them. Requests for unknown addresses count, too,
//! so the limit does not reveal which addresses exist.

use database::Connection;
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, Names as _};

use super::error::PasswordError;
use super::store::{self, LimitScope};
use crate::back_off::name_hash;
use crate::client_network::ClientNetwork;
use crate::settings::CodeRequestSettings;

/// Counts a request for a code.
///
/// Must run in its own transaction, so that a refused request is rolled back and does not count.
///
/// # Errors
/// [`PasswordError::TooManyRequests`] if the request exceeds a limit.
pub(super) fn count_code_request(
    connection: &mut Connection,
    limits: CodeRequestSettings,
    email: &EmailAddress,
    client_network: &ClientNetwork,
) -> Result<(), PasswordError> {
    // Always in this order, so that two transactions cannot deadlock.
    let client = Sha256::digest(client_network.as_str()).into();
    let account = name_hash(email.normalized());
    for (scope, subject, per_hour) in [
        (LimitScope::Client, client, limits.per_client),
        (LimitScope::Account, account, limits.per_account),
    ] {
        if per_hour == 0 {
            continue;
        }
        if let Some(wait) = store::count_code_request(connection, scope, subject, per_hour)? {
            metrics::counter!("code_requests_refused_total", "counted" => scope.name())
                .increment(1);
            return Err(PasswordError::TooManyRequests(wait));
        }
    }
    Ok(())
}
