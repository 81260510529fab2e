//! Sign-in by username or e-mail address.
//!
//! An unknown name and a wrong password have the same response, the same database statements and the same
//! bcrypt work, so callers cannot find out which names exist.

mod authenticate;
mod requests;
pub(crate) mod routes;
mod store;

pub(crate) use authenticate::{authenticate, record_refusal};
pub(crate) use requests::SignInRequest;
