//! Browsers that stay signed in.
//!
//! A session is a [credential](crate::credentials) in a cookie, which only the routes of this module read: `POST /session`
//! signs in and starts one, `POST /session/token` exchanges it for an access token of five minutes, and `DELETE /session` ends
//! it. They refuse requests of other sites.
//!
//! - The cookie has two random values: one that finds the session, and one that every exchange replaces. A value that was
//!   replaced and comes back was copied, so it ends the session, no matter who sent it.
//! - A response may be lost on its way to the browser, which then has only the value that was replaced. So it names each
//!   exchange by a random value of its own, and repeats that with the exchange. Without it the cookie alone is not enough.
//! - An exchange that began before another one of the same session was committed did not come back: both were under way.
//!   It fails without an effect, and the browser repeats it with the cookie that it has then.
//!
//! Deliberately absent: sessions for programs. Their tokens come from `POST /user/auth`.

mod lifecycle;
mod requests;
pub(crate) mod routes;
mod store;
