//! Calls to URLs that come from callers, guarded against server-side request forgery.
//!
//! A caller registers a URL, and the system sends requests to it from inside its network. A [`GuardedClient`] checks the
//! addresses of the host again at every connection, so a name that resolves differently the second time gains nothing.
//!
//! Invariants: redirects are not followed; proxies from the environment are not used; every request and every
//! DNS lookup has a timeout; the kept part of a response has a limit.
//!
//! Deliberately absent: retries and limits per host, which depend on what is sent.

mod address_policy;
mod certificates;
mod client;
mod connection;
mod engine_origins;
mod error;
mod resolver;
mod retry_after;
mod system_config;
mod target;

pub use address_policy::{AddressPolicy, Refusal};
pub use client::{Call, GuardedClient, TruncatedResponse};
pub use engine_origins::EngineOrigins;
pub use error::SendError;
pub use resolver::{Resolve, Resolved, SystemResolver, Unresolved, for_owner};
pub use retry_after::retry_after;
pub use target::{InvalidUrl, MAX_HOST, TargetUrl};
