//! Confirmation of a user's e-mail address by a code that was sent to it, together with the account's token or password, or
//! with a new password.
//!
//! Sign-up and changes of the address send the first code, if confirmation is required. A user can request another one
//! at any time, also while it is not required, so that users can confirm their addresses before it is.

mod confirm;
mod requests;
pub(crate) mod routes;
