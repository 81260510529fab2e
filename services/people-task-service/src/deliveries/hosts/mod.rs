//! The hosts of deliveries, and pausing them.
//!
//! Deliveries to a paused host wait: workers do not load them, so they are neither sent nor counted as attempts. The
//! rows of `paused_hosts` are all that there is; a delivery does not know whether it is paused.

mod list;
mod pause;
mod requests;
pub(crate) mod routes;
mod store;
