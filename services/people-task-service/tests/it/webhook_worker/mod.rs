//! The webhook-worker, with real receivers.

mod delivery;
mod fairness;
pub(crate) mod fixture;
mod isolation;
mod pauses;
mod proxy;
pub(crate) mod receiver;
mod recovery;
mod retries;
mod signing;
