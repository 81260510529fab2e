//! API keys, with which programs act for a user.
//!
//! A key is a [credential](crate::credentials): a row with the hash of a text that is told once. No service takes it: the
//! gateway exchanges it for an access token of five minutes, which names the key and what it may do, and ends with it.
//!
//! - A key may do what both its scopes and its user may do: `auth::routes` says what each call needs. One that an
//!   administrator makes for a person decides nothing.
//! - A person is mailed about each new key, whose maker may have a stolen token, and before one expires.
//! - The row names the incarnation of the database. After a restore keys are off, because some that were ended may be back,
//!   until an administrator confirms them.
//! - What takes an account away from others who had a part of it ends the keys of a person: recovery by a code, a password
//!   that an administrator sets, `revoke-tokens`. A password that its owner changes does not, and programs go on.
//! - A text that is no key counts as a failed sign-in of its network. It delays no key: those cannot be guessed.
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
