//! The keys that verify tokens, and the feed of raised epochs, through which other processes learn of
//! revocations within a poll interval.
//!
//! A full read lists the epochs that a token can still be older than, by the time of the raise. Then follow
//! changes, from the oldest transaction that was running when the full read began. Every later commit has at least
//! that number, so the feed skips nothing; it can repeat entries.
//!
//! A reader that asks for changes may wait for some up to a second. Meanwhile the poller of this process, which reads
//! the feed from the database twice a second, does so for all of them.
//!
//! Numbers and epochs count within one incarnation of the database. Each page says which one it is, and a reader
//! starts again when it changes.

mod cursor;
mod feed;
mod poller;
mod revoke_all;
pub(crate) mod routes;
mod store;

pub(crate) use feed::Watching;
pub(crate) use poller::Poller;
pub use revoke_all::revoke_all_tokens;
