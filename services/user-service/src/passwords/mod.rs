//! Changing, resetting and recovering passwords.
//!
//! Every new password raises the user's epoch and the generation of the user's codes in the same
//! transaction, so it revokes all earlier tokens, and no earlier code sets a password. One that confirms an address still does
//! so, with the new password.

mod change;
mod forgot;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;

pub(crate) use change::{count_attempt, reset_by_code};
