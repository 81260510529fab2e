use std::fmt;
use std::path::PathBuf;

use config::{Config, Environment, File, FileFormat};

use crate::SettingValue;

/// One row of the table of settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Description {
    /// The environment variable.
    pub name: &'static str,
    /// What applies when it is not set; `None` when it must be set or has no default.
    pub default: Option<&'static str>,
    /// Whether the process refuses to start without it.
    pub required: bool,
    /// What is allowed, in words.
    pub allowed: &'static str,
    /// Whether it is a secret, which may also come from the file named by `<NAME>_FILE`.
    pub secret: bool,
    /// What it is for.
    pub purpose: &'static str,
}

/// Why a process cannot start with the settings it was given.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that has no default was not given.
    #[error("{name} is not set. Set it to {allowed}{}. It is {purpose}", file_hint(.name, *.secret))]
    Missing {
        /// The environment variable.
        name: &'static str,
        /// What is allowed.
        allowed: &'static str,
        /// What it is for.
        purpose: &'static str,
        /// Whether it may come from a file.
        secret: bool,
    },
    /// A setting holds something that is not allowed.
    #[error("{name} is {given}, which is not allowed: {reason}. Set it to {allowed}.")]
    Invalid {
        /// The environment variable.
        name: &'static str,
        /// The value, or a placeholder for a secret.
        given: String,
        /// What is wrong with it.
        reason: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A secret was given twice.
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
        /// Why not.
        source: std::io::Error,
    },
    /// The settings file is missing or is not TOML.
    #[error("The settings cannot be read: {0}")]
    Source(#[from] config::ConfigError),
}

fn file_hint(name: &str, secret: bool) -> String {
    if secret {
        format!(", or {name}_FILE to a file that holds it")
    } else {
        String::new()
    }
}

/// The settings of one process or of one part of it.
pub trait Settings: Sized {
    /// Reads every setting of this type.
    ///
    /// # Errors
    /// The first setting that is missing or wrong.
    fn read(reader: &mut Reader) -> Result<Self, Error>;
}

/// Hands out settings by name and remembers which ones exist.
pub struct Reader {
    source: Source,
    described: Vec<Description>,
}

enum Source {
    Given(Box<Config>),
    /// Nothing is given, and what is required has an example: reading them all describes them all.
    Examples,
}

impl Reader {
    /// The process's environment over the TOML file that `CONFIG_FILE` names, if it is set.
    ///
    /// # Errors
    /// A file that is missing or is not TOML.
    pub fn from_process() -> Result<Self, Error> {
        let mut builder = Config::builder();
        if let Some(path) = std::env::var_os("CONFIG_FILE").filter(|path| !path.is_empty()) {
            let file = File::from(PathBuf::from(path)).format(FileFormat::Toml);
            builder = builder.add_source(file);
        }
        let environment = Environment::default().ignore_empty(true);
        let config = builder.add_source(environment).build()?;
        Ok(Self::new(Source::Given(Box::new(config))))
    }

    /// Settings from pairs instead of the environment, for tests.
    ///
    /// # Errors
    /// None in practice; the configuration library reports them.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, Error>
    where
        N: Into<String>,
        V: Into<String>,
    {
        let pairs = pairs.into_iter().map(|(n, v)| (n.into(), v.into()));
        let environment = Environment::default()
            .ignore_empty(true)
            .source(Some(pairs.collect()));
        let config = Config::builder().add_source(environment).build()?;
        Ok(Self::new(Source::Given(Box::new(config))))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            described: Vec::new(),
        }
    }

    /// A setting without which the process does not start.
    ///
    /// # Errors
    /// Missing or wrong.
    pub fn required<T: SettingValue>(
        &mut self,
        name: &'static str,
        purpose: &'static str,
    ) -> Result<T, Error> {
        let description = self.describe::<T>(name, None, true, purpose);
        match self.given(&description)? {
            Some(text) => parse(&description, &text),
            None if matches!(self.source, Source::Examples) => parse(&description, T::EXAMPLE),
            None => Err(Error::Missing {
                name,
                allowed: T::ALLOWED,
                purpose,
                secret: T::SECRET,
            }),
        }
    }

    /// A setting that may be absent.
    ///
    /// # Errors
    /// Wrong.
    pub fn optional<T: SettingValue>(
        &mut self,
        name: &'static str,
        purpose: &'static str,
    ) -> Result<Option<T>, Error> {
        let description = self.describe::<T>(name, None, false, purpose);
        let given = self.given(&description)?;
        given.map(|text| parse(&description, &text)).transpose()
    }

    /// A setting with a default.
    ///
    /// # Errors
    /// Wrong.
    pub fn or_default<T: SettingValue>(
        &mut self,
        name: &'static str,
        default: &'static str,
        purpose: &'static str,
    ) -> Result<T, Error> {
        let description = self.describe::<T>(name, Some(default), false, purpose);
        let given = self.given(&description)?;
        parse(&description, given.as_deref().unwrap_or(default))
    }

    /// Like [`Reader::or_default`], for a type whose values are not all allowed here.
    ///
    /// # Errors
    /// Wrong, or refused by `accepts`.
    pub fn in_range<T: SettingValue>(
        &mut self,
        name: &'static str,
        default: &'static str,
        allowed: &'static str,
        purpose: &'static str,
        accepts: impl Fn(&T) -> bool,
    ) -> Result<T, Error> {
        let mut description = self.describe::<T>(name, Some(default), false, purpose);
        description.allowed = allowed;
        if let Some(last) = self.described.last_mut() {
            last.allowed = allowed;
        }
        let given = self.given(&description)?;
        let text = given.as_deref().unwrap_or(default);
        let value = parse::<T>(&description, text)?;
        if accepts(&value) {
            Ok(value)
        } else {
            Err(invalid(&description, text, "it is out of range".to_owned()))
        }
    }

    fn describe<T: SettingValue>(
        &mut self,
        name: &'static str,
        default: Option<&'static str>,
        required: bool,
        purpose: &'static str,
    ) -> Description {
        let description = Description {
            name,
            default,
            required,
            allowed: T::ALLOWED,
            secret: T::SECRET,
            purpose,
        };
        self.described.push(description.clone());
        description
    }

    fn given(&self, description: &Description) -> Result<Option<String>, Error> {
        let config = match &self.source {
            Source::Examples => return Ok(None),
            Source::Given(config) => config.as_ref(),
        };
        let name = description.name;
        let direct = text_of(config, &name.to_lowercase())?;
        if !description.secret {
            return Ok(direct);
        }
        let file = text_of(config, &format!("{}_file", name.to_lowercase()))?;
        match (direct, file) {
            (Some(_), Some(_)) => Err(Error::GivenTwice { name }),
            (Some(direct), None) => Ok(Some(direct)),
            (None, Some(path)) => match std::fs::read_to_string(&path) {
                // Like an empty variable, an empty file is none.
                Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())
                    .filter(|text| !text.is_empty())),
                Err(source) => Err(Error::UnreadableFile { name, path, source }),
            },
            (None, None) => Ok(None),
        }
    }
}

fn text_of(config: &Config, key: &str) -> Result<Option<String>, Error> {
    match config.get_string(key) {
        Ok(text) => Ok(Some(text)),
        Err(config::ConfigError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn parse<T: SettingValue>(description: &Description, text: &str) -> Result<T, Error> {
    T::parse(text).map_err(|reason| invalid(description, text, reason))
}

fn invalid(description: &Description, text: &str, reason: String) -> Error {
    Error::Invalid {
        name: description.name,
        given: if description.secret {
            "(a secret that is not shown)".to_owned()
        } else {
            format!("{text:?}")
        },
        reason,
        allowed: description.allowed,
    }
}

/// Every setting that `S` reads, in its order.
///
/// # Errors
/// A default that its own type refuses, which is a mistake in the code.
pub fn describe<S: Settings>() -> Result<Vec<Description>, Error> {
    let mut reader = Reader::new(Source::Examples);
    S::read(&mut reader)?;
    Ok(reader.described)
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}
