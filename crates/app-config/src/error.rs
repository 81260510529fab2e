use std::borrow::Cow;

use config::ConfigError;

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
    /// A variable of the environment is not text. Its value, which may be a secret, is not shown.
    #[error("{name} is not valid UTF-8. Set it again.")]
    NotUnicode {
        /// The environment variable.
        name: String,
    },
    /// A secret is set both directly and through a file.
    #[error("{name} and {name}_FILE are both set. Set one of them.")]
    GivenTwice {
        /// The environment variable.
        name: &'static str,
    },
    /// The file that should hold a secret cannot be read.
    #[error("{name}_FILE names {path}, which cannot be read: {error}")]
    UnreadableFile {
        /// The environment variable without `_FILE`.
        name: &'static str,
        /// The file.
        path: String,
        /// The error of the file system.
        error: std::io::Error,
    },
    /// The settings file is missing or is not TOML.
    #[error("The settings cannot be read: {0}")]
    Source(String),
}

// The text only: the error of a file that is not TOML also shows a line of it, which may have a secret.
impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Source(match error {
            ConfigError::FileParse { uri, cause } => {
                without_contents(uri.as_deref(), &cause.to_string())
            }
            error => error.to_string(),
        })
    }
}

/// The file, and of its error the first line, which is the position, and the last one, which says what is wrong. The lines
/// between them show the file.
fn without_contents(file: Option<&str>, error: &str) -> String {
    let mut lines = error.lines();
    let parts = [file, lines.next(), lines.next_back()];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    parts.join(": ")
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

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use config::{Config, File, FileFormat};

    use super::Error;

    #[test]
    fn a_settings_file_that_is_not_toml_is_refused_without_its_contents() {
        let name = format!("settings-test-broken-{}.toml", std::process::id());
        let path = std::env::temp_dir().join(&name);
        std::fs::write(
            &path,
            "pause = \"5s\"\nsmtp_url = \"smtp://ada:s3cret@mail\n",
        )
        .unwrap();
        let file = File::from(path.clone()).format(FileFormat::Toml);
        let refused = Config::builder().add_source(file).build().unwrap_err();
        std::fs::remove_file(&path).unwrap();

        let error = Error::from(refused);
        let expected = "TOML parse error at line 2, column 35: invalid basic string, expected `\"`";
        assert!(
            error.to_string().ends_with(&format!("{name}: {expected}")),
            "{error}"
        );
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(error.source().is_none());
    }
}
