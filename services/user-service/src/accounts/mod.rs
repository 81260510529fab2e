//! Accounts: sign-up, a user's own account, administration, and the tokens of a user.
//!
//! The database decides whether a name is free; the code maps the violated constraint to an error.

mod create;
mod list_query;
mod requests;
mod responses;
pub(crate) mod routes;
pub(crate) mod store;
mod token;
mod update;

pub(crate) use create::create_first_admin;
pub(crate) use responses::{EmptyResponse, SignInResponse};
pub(crate) use store::{TokenSubject, User};
pub(crate) use token::{is_trusted, revoke_earlier_tokens, sign_token, signed_subject};
pub(crate) use update::check_not_last_admin;
