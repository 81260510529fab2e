//! API keys, with which programs act for a user: [why](../../../../docs/decisions/api-keys.md).
//!
//! A key is a [credential](crate::credentials). It may do what both its scopes and its user may do: `auth::routes` says what each
//! call needs. A person is mailed about each new key, whose maker may have a stolen token, and before one expires.
//!
//! Deliberately absent: keys that make keys, and the text of a key after its creation.

mod lifecycle;
mod notices;
mod requests;
pub(crate) mod routes;
mod store;

use auth::KeyScope;

pub(crate) use lifecycle::can_mail;
pub(crate) use notices::send_notices;

/// What a key may do that names no scopes.
const DEFAULT_SCOPES: [KeyScope; 2] = [KeyScope::TasksRead, KeyScope::TasksWrite];
