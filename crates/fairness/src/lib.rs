//! Capacity that owners share, so that none of them can keep others waiting.
//!
//! A share is for an owner: a client network, a user, a domain. What is shared decides which type fits:
//!
//! - [`Shares`] count units that their owners give back when they like: requests in flight, bytes, lookups. A [`Rule`]
//!   says how many an owner may hold. [`Remainder`] keeps a part free for owners that hold nothing, because units cannot
//!   be taken back. [`Each`] is a number for each owner. Others may ask [`Recent`] whether an owner is alone, so that
//!   they bind only while another one waits or is likely to. Who gets nothing is refused, or waits its turn.
//! - [`FairQueue`] holds items that can be taken back: work that has not begun, connections. An owner may fill it while
//!   no other one needs it. Then those with fewer items displace the newest of those with more, and owners take turns.
//!
//! Everything is in the memory of one process and bounded: only owners that hold or wait for something are remembered.

mod fair_queue;
mod recent;
mod rules;
mod shares;

use std::hash::Hash;

pub use fair_queue::FairQueue;
pub use recent::Recent;
pub use rules::{Demand, Each, Remainder, Rule};
pub use shares::{Share, Shares};

/// What tells owners apart.
pub trait Owner: Clone + Eq + Hash {}

impl<T: Clone + Eq + Hash> Owner for T {}

/// Why an owner gets nothing now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The owner has its whole share.
    #[error("the owner has its whole share")]
    ShareUsed,
    /// All owners together have too much.
    #[error("the capacity is exhausted")]
    Full,
}
