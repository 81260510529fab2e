//! Typed settings: environment over file over defaults, checked at start.
//!
//! A binary has one settings type, which [`settings!`] declares. It reads every value through a [`Reader`], which knows the
//! name, the default, the allowed values and the purpose. The same calls describe the settings:
//! [`describe`] runs them over examples, so the table in the documentation cannot drift from the code.
//!
//! An invalid value stops the process with the variable's name, the value (unless it is a secret) and
//! what is allowed. Settings are never global: they are passed to the code that needs them.

mod declare;
mod error;
mod public_url;
mod reader;
mod value;

pub use error::Error;
pub use public_url::PublicUrl;
pub use reader::{Description, Reader, Settings, describe, names_in_file};
pub use value::{Csv, Networks, SettingValue, Switch, parse_list};
