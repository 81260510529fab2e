//! The keys that verify tokens, and the feed of raised epochs, through which other processes learn of
//! revocations within a poll interval.
//!
//! The cursor of the feed is the oldest transaction that was running when the feed was read. Every later
//! commit has at least that number, so the feed skips nothing; it can repeat entries.

mod feed;
mod poller;
mod responses;
pub(crate) mod routes;
mod store;

pub(crate) use poller::Poller;
