//! The back-off that slows down guessing a password: after several failures in a row, each further attempt
//! must wait, even with the right password: [why](../../../../docs/decisions/rate-limits.md).
//!
//! A name is counted as it was given, whether it exists or not. So the counts reveal neither which names exist nor which two
//! belong to one user.

mod store;

use std::time::Duration;

use chrono::{DateTime, Utc};
use database::{Connection, Database, Error};
use jobs::growing_pause;
use sha2::{Digest as _, Sha256};
use values::{EmailAddress, UserId};

use crate::client_network::ClientNetwork;
use crate::error::UserError;

pub(crate) use store::{
    count, delete_all_failures, delete_failures, delete_failures_batch, forget_networks,
    is_known_network, record_network,
};

/// How many failures in a row start the back-off.
const FAILURES_FROM_ONE_NETWORK: i32 = 5;
const FAILURES_FROM_ANYWHERE: i32 = 50;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(5 * 60);

/// Which failures of a name are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureScope {
    OneNetwork,
    Anywhere,
}

impl FailureScope {
    /// How long the next attempt must wait after `failures` in a row: one second after the failure that
    /// reaches the threshold, doubling with each further one up to five minutes.
    pub(super) fn pause_after(self, failures: i32) -> Option<Duration> {
        let threshold = match self {
            Self::OneNetwork => FAILURES_FROM_ONE_NETWORK,
            Self::Anywhere => FAILURES_FROM_ANYWHERE,
        };
        let beyond = u64::try_from(failures.checked_sub(threshold)?).ok()?;
        Some(growing_pause(FIRST_PAUSE, MAX_PAUSE, beyond + 1))
    }
}

/// The client network of the row that counts failures from anywhere.
const ANYWHERE: &str = "";

/// The hash of a normalized name that failures are counted by, so that the database does not contain
/// unknown names.
pub(crate) fn name_hash(normalized: &str) -> [u8; 32] {
    Sha256::digest(normalized).into()
}

/// What an attempt to prove a password is counted by.
#[derive(Debug, Clone)]
pub(crate) struct AttemptKey {
    pub(super) name_hash: [u8; 32],
    pub(super) client: ClientNetwork,
    is_known_network: bool,
}

impl AttemptKey {
    /// The key of an attempt under a name. The same statement runs for a name that no user has.
    pub(crate) fn load(
        connection: &mut Connection,
        name_hash: [u8; 32],
        user: Option<UserId>,
        client: &ClientNetwork,
    ) -> Result<Self, Error> {
        Ok(Self {
            name_hash,
            client: client.clone(),
            is_known_network: is_known_network(connection, user, client)?,
        })
    }

    /// The key of an attempt that is counted only by its network.
    pub(crate) fn of_network(name_hash: [u8; 32], client: &ClientNetwork) -> Self {
        Self {
            name_hash,
            client: client.clone(),
            is_known_network: true,
        }
    }

    /// The counts that the attempt is part of. Every transaction locks their rows in this order, so that two
    /// of them cannot deadlock.
    pub(super) fn scopes(&self) -> &'static [FailureScope] {
        if self.is_known_network {
            &[FailureScope::OneNetwork]
        } else {
            &[FailureScope::Anywhere, FailureScope::OneNetwork]
        }
    }

    pub(super) fn network_of(&self, scope: FailureScope) -> &str {
        match scope {
            FailureScope::Anywhere => ANYWHERE,
            FailureScope::OneNetwork => self.client.as_str(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct CountedAttempt {
    pub(super) key: AttemptKey,
    /// The counts in which it started a pause, and the pause's end.
    pub(super) pauses: Vec<(FailureScope, DateTime<Utc>)>,
}

/// Passes on the result of an attempt whose password is not known to be wrong. With an error, which says nothing about the
/// password, the attempt does not count.
pub(crate) async fn refund_on_error<T>(
    database: &Database,
    attempt: &CountedAttempt,
    result: Result<T, UserError>,
) -> Result<T, UserError> {
    if result.is_err() {
        let attempt = attempt.clone();
        let refund = move |connection: &mut Connection| store::refund(connection, &attempt);
        database.transaction(refund).await?;
    }
    result
}

/// Ends the back-off of a user who has a new password. An attacker who knew the old one may have signed in with it, so
/// the networks of earlier sign-ins are forgotten, except for `kept`. The caller has locked the user.
pub(crate) fn end_back_off(
    connection: &mut Connection,
    user: UserId,
    names: [&EmailAddress; 2],
    kept: Option<&ClientNetwork>,
) -> Result<(), Error> {
    forget_networks(connection, user, kept)?;
    delete_all_failures(connection, &names)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::FailureScope::{Anywhere, OneNetwork};

    #[test]
    fn the_pause_doubles_from_one_second_to_five_minutes() {
        let seconds = |failures| OneNetwork.pause_after(failures).map(|p| p.as_secs());
        assert_eq!(seconds(4), None);
        assert_eq!(
            [5, 6, 7, 12].map(seconds),
            [Some(1), Some(2), Some(4), Some(128)]
        );
        assert_eq!(
            [13, 14, 1000, i32::MAX].map(seconds),
            [Some(256), Some(300), Some(300), Some(300)]
        );
        assert_eq!(Anywhere.pause_after(49), None);
        assert_eq!(Anywhere.pause_after(50), Some(Duration::from_secs(1)));
    }
}
