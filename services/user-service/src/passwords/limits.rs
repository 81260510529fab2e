//! How many codes may be asked for: by account, so that nobody's mailbox is flooded, and by client
//! address, so that nobody floods the mailboxes of many.
//!
//! The counts live in the database, so they hold over all replicas. They go by what was asked for,
//! whether or not somebody has the address, so they tell nothing.

use diesel::PgConnection;
use sha2::{Digest as _, Sha256};
use values::EmailAddress;

use super::error::PasswordError;
use super::store;
use crate::settings::CodeRequestSettings;
use crate::sign_in::SignInName;

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counted {
    /// Requests for one e-mail address.
    Account,
    /// Requests from one client address.
    Client,
}

impl Counted {
    /// The name in the database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Client => "client",
        }
    }
}

/// Counts a request for a code.
///
/// Must run in a transaction of its own, which a refusal rolls back: a refused request does not count.
///
/// # Errors
/// [`PasswordError::TooManyRequests`] when it is one too many.
pub(super) fn count_request(
    connection: &mut PgConnection,
    limits: CodeRequestSettings,
    email: &EmailAddress,
    client_address: &str,
) -> Result<(), PasswordError> {
    // Always in this order, so that two transactions do not wait for each other.
    let client = Sha256::digest(client_address).into();
    let account = SignInName::new(email.key()).account();
    for (counted, subject, an_hour) in [
        (Counted::Client, client, limits.per_client),
        (Counted::Account, account, limits.per_account),
    ] {
        if an_hour == 0 {
            continue;
        }
        if let Some(wait) = store::count_code_request(connection, counted, subject, an_hour)? {
            metrics::counter!("code_requests_refused_total", "counted" => counted.name())
                .increment(1);
            return Err(PasswordError::TooManyRequests(wait));
        }
    }
    Ok(())
}
