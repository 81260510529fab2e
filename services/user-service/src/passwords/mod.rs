//! Passwords: what they must be like, how they are hashed, how they are changed and recovered.
//!
//! Every new password raises the user's epoch and the generation of its codes in the same transaction, so
//! it ends all tokens and all codes that were made before it.

mod answers;
mod change;
mod error;
mod limits;
mod recovery;
pub(crate) mod routes;
mod store;
