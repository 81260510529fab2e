//! The back-off that slows down guessing a password: after several failures in a row, each further attempt
//! must wait, even with the right password.
//!
//! - Failures are counted for each name and client network, and for each name alone. A name is counted as it
//!   was given, whether it exists or not. So the counts reveal neither which names exist nor which two
//!   belong to one user.
//! - An attempt counts before its password is checked, so that concurrent guesses count each other.
//! - Attempts from a network from which the user signed in before are not part of the count for the name
//!   alone, so that strangers cannot lock a user out.

mod attempt;
mod end;
mod error;
mod known_network_store;
mod pause;
mod refund;
mod store;

pub(crate) use attempt::{AttemptKey, CountedAttempt, name_hash};
pub(crate) use end::end_back_off;
pub(crate) use error::{BackOffProblems, TooManyAttempts};
pub(crate) use known_network_store::{forget_networks, is_known_network, record_network};
pub(crate) use refund::refund_on_error;
pub(crate) use store::{count, delete_all_failures, delete_failures, delete_failures_batch};
