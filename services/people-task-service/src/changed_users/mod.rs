//! Users that have changed since they signed up, as the user service reports them.
//!
//! Tokens say who a user is while they are valid. What outlives a token, such as a webhook, is judged by these rows.
//! Reports may be repeated and arrive in any order: the newest counts.

pub(crate) mod routes;
pub(crate) mod store;

pub(crate) use store::resume_deliveries;
