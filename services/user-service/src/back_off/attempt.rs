use chrono::{DateTime, Utc};
use database::{Connection, Error};
use sha2::{Digest as _, Sha256};
use values::UserId;

use super::known_network_store::is_known_network;
use super::pause::FailureScope;
use crate::client_network::ClientNetwork;

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

    /// The counts that the attempt is part of. Every transaction locks their rows in this order, so that two
    /// of them cannot deadlock.
    pub(super) fn scopes(&self) -> &'static [FailureScope] {
        if self.is_known_network {
            &[FailureScope::OneNetwork]
        } else {
            &[FailureScope::Anywhere, FailureScope::OneNetwork]
        }
    }

    /// The client network of the row of a count.
    pub(super) fn network_of(&self, scope: FailureScope) -> &str {
        match scope {
            FailureScope::Anywhere => ANYWHERE,
            FailureScope::OneNetwork => self.client.as_str(),
        }
    }
}

/// An attempt that counts as a failure.
#[derive(Debug, Clone)]
pub(crate) struct CountedAttempt {
    pub(super) key: AttemptKey,
    /// The counts in which it started a pause, and the pause's end.
    pub(super) pauses: Vec<(FailureScope, DateTime<Utc>)>,
}
