use std::borrow::Cow;

use crate::SettingValue;

/// An error in the settings of a process.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A required setting is not set.
    #[error("{name} is not set. Set it to {allowed}{}. It is {purpose}", file_hint(.name, *.secret))]
    Missing {
        /// The environment variable.
        name: &'static str,
        /// The allowed values.
        allowed: &'static str,
        /// The purpose of the setting.
        purpose: &'static str,
        /// Whether it may come from a file.
        secret: bool,
    },
    /// A setting has a value that is not allowed.
    #[error("{name} is {given}, which is not allowed: {reason}. Set it to {allowed}.")]
    Invalid {
        /// The environment variable.
        name: &'static str,
        /// The value, or a placeholder for a secret.
        given: String,
        /// What is wrong with it.
        reason: String,
        /// The allowed values.
        allowed: Cow<'static, str>,
    },
    /// A secret is set both directly and through a file.
    #[error("{name} and {name}_FILE are both set. Set one of them.")]
    GivenTwice {
        /// The environment variable.
        name: &'static str,
    },
    /// The file that should hold a secret cannot be read.
    #[error("{name}_FILE names {path}, which cannot be read: {source}")]
    UnreadableFile {
        /// The environment variable without `_FILE`.
        name: &'static str,
        /// The file.
        path: String,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The settings file is missing or is not TOML.
    #[error("The settings cannot be read: {0}")]
    Source(#[from] config::ConfigError),
}

impl Error {
    /// A setting that is required, at least because of others.
    pub fn missing<T: SettingValue>(name: &'static str, purpose: &'static str) -> Self {
        Self::Missing {
            name,
            allowed: T::ALLOWED,
            purpose,
            secret: T::SECRET,
        }
    }
}

fn file_hint(name: &str, secret: bool) -> String {
    let hint = secret.then(|| format!(", or {name}_FILE to a file that holds it"));
    hint.unwrap_or_default()
}
