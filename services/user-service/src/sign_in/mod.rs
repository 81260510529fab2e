//! Sign-in by username or e-mail address, and the back-off that slows down guessing.
//!
//! An unknown name and a wrong password have the same response, the same database statements and one
//! bcrypt check of the same cost, so callers cannot find out which names exist.

mod attempt;
mod authenticate;
mod back_off;
mod clear;
mod error;
mod name;
mod requests;
pub(crate) mod routes;
pub(crate) mod store;

pub(crate) use clear::clear_failures;
pub(crate) use name::SignInName;
