//! Browsers that stay signed in: [why](../../../../docs/decisions/sessions.md).
//!
//! A session is a [credential](crate::credentials) in a cookie, which only the routes of this module read. `POST /session`
//! signs in and starts one, `POST /session/token` exchanges it for an access token, and `DELETE /session` ends it.
//!
//! Deliberately absent: sessions for programs. Their tokens come from `POST /user/auth`.

mod lifecycle;
mod requests;
pub(crate) mod routes;
mod store;
