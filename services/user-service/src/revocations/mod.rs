//! The keys that verify tokens, and the feed of raised epochs, through which other processes learn of
//! revocations within a poll interval: [why](../../../../docs/decisions/token-epochs-and-revocation-feed.md).
//!
//! A full read lists the epochs that a token can still be older than, by the time of the raise. Then follow changes, and the
//! feed skips nothing; it can repeat entries. A reader starts again when the incarnation of the database changes.

mod cursor;
mod feed;
mod poller;
mod revoke_all;
pub(crate) mod routes;
mod store;

pub(crate) use feed::Watching;
pub(crate) use poller::Poller;
pub use revoke_all::revoke_all_tokens;
