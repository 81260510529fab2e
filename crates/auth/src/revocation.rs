use std::cmp::Reverse;
use std::collections::HashMap;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use values::{CredentialId, RevocableId};

use crate::claims::LEEWAY_SECONDS;
use crate::{Claims, Rejection};

/// The user service's response to `GET /internal/revocations?cursor=…&limit=…`: one page of the feed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevocationFeed {
    /// The cursor of the changes that follow the last page. Only readers of 0.2 require it.
    #[serde(default)]
    pub cursor: i64,
    /// Users whose epoch was raised since the requested cursor, with their current epoch, and credentials that have ended,
    /// with the highest epoch of all. An entry may occur twice, but none is omitted.
    pub epochs: Vec<(RevocableId, i64)>,
    /// The cursor for the next request.
    pub next: String,
    /// Whether the next page is to be read at once.
    pub more: bool,
    /// The incarnation of the database that the page was read from. See [`crate::Subject::incarnation`].
    pub incarnation: String,
    /// The longest lifetime of any token that may be valid, in seconds. The feed omits epochs that were raised
    /// earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_token_lifetime: Option<u64>,
}

/// What is known of the feed: the database's incarnation, and the raised epochs of users and the ended credentials that
/// may still have unexpired tokens.
#[derive(Debug, Default)]
pub struct Revocations {
    known: RwLock<Known>,
}

/// An epoch in memory. An epoch rises by one with each change of a user, so four bytes are enough; that of a deleted user
/// or of an ended credential, the highest of all, becomes the highest of these.
type CompactEpoch = u32;

#[derive(Debug, Default)]
struct Known {
    incarnation: Option<String>,
    max_token_lifetime: Option<u64>,
    /// Whether the epochs of this incarnation are still being read for the first time.
    is_incomplete: bool,
    /// The result of the last full read, sorted by identifier: there can be millions.
    listed: Vec<(RevocableId, CompactEpoch)>,
    /// Epochs raised since the full read that is under way started, or since the last one.
    recent: HashMap<RevocableId, CompactEpoch>,
    /// Epochs raised before the full read that is under way started. That read lists them if they still matter.
    earlier: HashMap<RevocableId, CompactEpoch>,
}

impl Known {
    fn raised(&self, id: RevocableId) -> CompactEpoch {
        let listed = self.listed.binary_search_by_key(&id, |(id, _)| *id);
        let listed = listed.ok().and_then(|at| Some(&self.listed.get(at)?.1));
        let known = [listed, self.recent.get(&id), self.earlier.get(&id)];
        known.into_iter().flatten().copied().max().unwrap_or(0)
    }
}

impl Revocations {
    /// Checks what can change while a token is valid.
    pub(crate) fn check(&self, claims: &Claims, now: u64) -> Result<(), Rejection> {
        let known = self.known.read();
        // The feed omits epochs that only older tokens are below.
        if let Some(lifetime) = known.max_token_lifetime
            && claims.iat.saturating_add(lifetime) + LEEWAY_SECONDS < now
        {
            return Err(Rejection::Expired);
        }
        let subject = &claims.subject;
        if let Some(current) = &known.incarnation
            && subject.incarnation != *current
        {
            return Err(Rejection::Revoked);
        }
        if known.is_incomplete {
            return Err(Rejection::NotReady);
        }
        let has_ended = |id: RevocableId| known.raised(id) > 0;
        if subject.epoch < i64::from(known.raised(subject.id.into()))
            || subject.credential.is_some_and(|id| has_ended(id.into()))
        {
            return Err(Rejection::Revoked);
        }
        Ok(())
    }

    /// Adds raised epochs. An epoch never decreases.
    pub fn raise<Id: Into<RevocableId>>(&self, raised: impl IntoIterator<Item = (Id, i64)>) {
        let mut known = self.known.write();
        for (id, epoch) in raised {
            let epoch = compact(epoch);
            let recent = known.recent.entry(id.into()).or_insert(epoch);
            *recent = (*recent).max(epoch);
        }
    }

    /// Adds credentials that have ended.
    pub fn end(&self, credentials: impl IntoIterator<Item = CredentialId>) {
        self.raise(credentials.into_iter().map(|id| (id, i64::MAX)));
    }

    /// Whether all epochs of the current incarnation have been read.
    pub(crate) fn is_complete(&self) -> bool {
        !self.known.read().is_incomplete
    }

    /// Forgets the epochs of any other incarnation, and from now on refuses its tokens. Tokens of this one are
    /// refused as [`Rejection::NotReady`] until the next [`Revocations::replace`].
    pub(crate) fn start_incarnation(&self, incarnation: String) {
        let mut known = self.known.write();
        *known = Known {
            incarnation: Some(incarnation),
            max_token_lifetime: known.max_token_lifetime,
            is_incomplete: true,
            ..Known::default()
        };
    }

    pub(crate) fn set_max_token_lifetime(&self, seconds: Option<u64>) {
        self.known.write().max_token_lifetime = seconds;
    }

    pub(crate) fn start_full_read(&self) {
        let mut known = self.known.write();
        let recent = std::mem::take(&mut known.recent);
        for (id, epoch) in recent {
            let earlier = known.earlier.entry(id).or_insert(epoch);
            *earlier = (*earlier).max(epoch);
        }
    }

    /// Replaces the epochs that were known when the full read started by its result.
    pub(crate) fn replace(&self, complete: FullRead) {
        let mut listed = complete.epochs;
        listed.sort_unstable_by_key(|(id, epoch)| (*id, Reverse(*epoch)));
        listed.dedup_by_key(|(id, _)| *id);
        listed.shrink_to_fit();
        let mut known = self.known.write();
        known.is_incomplete = false;
        known.listed = listed;
        known.earlier = HashMap::new();
    }
}

#[derive(Debug, Default)]
pub(crate) struct FullRead {
    /// The cursor of the next page; `None` before the first.
    pub(crate) cursor: Option<String>,
    epochs: Vec<(RevocableId, CompactEpoch)>,
}

impl FullRead {
    pub(crate) fn add(&mut self, page: &[(RevocableId, i64)]) {
        let page = page.iter().map(|(id, epoch)| (*id, compact(*epoch)));
        self.epochs.extend(page);
    }
}

fn compact(epoch: i64) -> CompactEpoch {
    CompactEpoch::try_from(epoch.max(0)).unwrap_or(CompactEpoch::MAX)
}
