//! Calls to addresses that callers chose, guarded against server-side request forgery.
//!
//! A caller registers a url and we send requests to it, from inside our network. So:
//!
//! - [`AddressPolicy`] says which addresses may be called: public ones, and what the operator allows.
//! - [`AddressPolicy::check_registration`] refuses a url early, so that its owner learns of it.
//! - [`GuardedClient`] checks again at every connection, on the very addresses that it connects to: a
//!   name that resolves differently the second time changes nothing.
//!
//! Invariants: no redirect is followed; no proxy of the environment is used; every request ends within
//! its time limit; no more of an answer is kept than [`GuardedClient`] was told to keep.
//!
//! Deliberately absent: retries and limits per host, which belong to whoever knows what is sent.

mod client;
mod error;
mod policy;
mod resolver;

pub use client::{Answer, GuardedClient, Limits};
pub use error::{BuildError, SendError};
pub use policy::{AddressPolicy, Refusal};
pub use resolver::{Resolve, Resolved, SystemResolver, Unresolved};
