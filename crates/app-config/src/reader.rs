use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;

use config::{Config, ConfigError, Environment, File, FileFormat, FileSourceFile, Source as _};

use crate::{Error, SettingValue};

/// One row of the table of settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Description {
    /// The environment variable.
    pub name: &'static str,
    /// The name that it had in the last release, which is still accepted.
    pub old_name: Option<&'static str>,
    /// The value when it is not set; `None` when it is required or has no default.
    pub default: Option<Cow<'static, str>>,
    /// Whether the process refuses to start without it.
    pub required: bool,
    /// The allowed values, in words.
    pub allowed: Cow<'static, str>,
    /// Whether it is a secret, which may also be read from the file that `<NAME>_FILE` names.
    pub secret: bool,
    /// The purpose of the setting.
    pub purpose: &'static str,
}

/// The settings of one process or of one part of it.
pub trait Settings: Sized {
    /// Reads all settings of this type.
    ///
    /// # Errors
    /// The first setting that is missing or invalid.
    fn read(reader: &mut Reader) -> Result<Self, Error>;
}

/// Reads settings by name and records which ones exist.
pub struct Reader {
    source: Source,
    old_name: Option<&'static str>,
    /// By name, in place of those that the settings are read with.
    defaults: HashMap<&'static str, &'static str>,
    described: Vec<Description>,
    warnings: Vec<String>,
}

enum Source {
    Given(Given),
    /// Settings get their defaults or examples, so that all of them can be described.
    Examples,
}

struct Given {
    config: Box<Config>,
    /// The variables whose values are not UTF-8, in lower case. They matter only if a setting has the name.
    not_unicode: HashSet<String>,
}

impl Reader {
    /// The process's environment over the TOML file that `CONFIG_FILE` names, if it is set.
    ///
    /// # Errors
    /// The file is missing or is not TOML.
    pub fn from_process() -> Result<Self, Error> {
        Self::from_variables(settings_file(), std::env::vars_os())
    }

    /// Settings from pairs instead of the environment, for tests.
    ///
    /// # Errors
    /// None in practice; the configuration library reports them.
    pub fn from_pairs<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Error> {
        let pairs = pairs.into_iter();
        Self::from_variables(None, pairs.map(|(n, v)| (n.into().into(), v.into().into())))
    }

    fn from_variables(
        file: Option<File<FileSourceFile, FileFormat>>,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Error> {
        let mut builder = Config::builder();
        if let Some(file) = file {
            builder = builder.add_source(file);
        }
        let mut not_unicode = HashSet::new();
        let mut given = HashMap::new();
        for (name, value) in variables {
            match (name.into_string(), value.into_string()) {
                // Of two names that differ only in case, the last one counts.
                (Ok(name), Ok(value)) => {
                    given.insert(name.to_lowercase(), value);
                }
                // The library refuses such a value with its text, even if no setting has the name.
                (Ok(name), Err(_)) => {
                    not_unicode.insert(name.to_lowercase());
                }
                // Settings have names in ASCII.
                (Err(_), _) => {}
            }
        }
        let environment = Environment::default().ignore_empty(true);
        let config = builder
            .add_source(environment.source(Some(given)))
            .build()?;
        Ok(Self::new(Source::Given(Given {
            config: Box::new(config),
            not_unicode,
        })))
    }

    fn new(source: Source) -> Self {
        Self {
            source,
            old_name: None,
            defaults: HashMap::new(),
            described: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The next setting had this name in the last release. The old name is still accepted, with a
    /// warning; the new name wins if both are set, so that old and new replicas can share an environment.
    pub fn renamed_from(&mut self, old_name: &'static str) -> &mut Self {
        self.old_name = Some(old_name);
        self
    }

    /// Gives a setting another default than its declaration does.
    pub fn replace_default(&mut self, name: &'static str, default: &'static str) -> &mut Self {
        self.defaults.insert(name, default);
        self
    }

    /// Adds a warning about values that are valid and dangerous.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// Changes that the operator should make. Log them as soon as logging is on.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// A setting without which the process does not start.
    ///
    /// # Errors
    /// It is missing or invalid.
    pub fn required<T: SettingValue>(
        &mut self,
        name: &'static str,
        purpose: &'static str,
    ) -> Result<T, Error> {
        let mut description = self.describe::<T>(name, None, true, T::ALLOWED, purpose);
        match self.given(&mut description)? {
            Some(text) => parse(&description, &text),
            None if matches!(self.source, Source::Examples) => parse(&description, T::EXAMPLE),
            None => Err(Error::missing::<T>(name, purpose)),
        }
    }

    /// A setting that may be absent.
    ///
    /// # Errors
    /// It is invalid.
    pub fn optional<T: SettingValue>(
        &mut self,
        name: &'static str,
        purpose: &'static str,
    ) -> Result<Option<T>, Error> {
        let mut description = self.describe::<T>(name, None, false, T::ALLOWED, purpose);
        let given = self.given(&mut description)?;
        given.map(|text| parse(&description, &text)).transpose()
    }

    /// A setting with a default.
    ///
    /// # Errors
    /// It is invalid.
    pub fn or_default<T: SettingValue>(
        &mut self,
        name: &'static str,
        default: impl Into<Cow<'static, str>>,
        purpose: &'static str,
    ) -> Result<T, Error> {
        self.in_range(name, default, T::ALLOWED, |_| true, purpose)
    }

    /// Like [`Reader::or_default`], for a number or a duration that has bounds. They are written like values.
    ///
    /// # Errors
    /// It is invalid, or out of bounds.
    pub fn between<T: SettingValue + PartialOrd>(
        &mut self,
        name: &'static str,
        default: impl Into<Cow<'static, str>>,
        low: &'static str,
        high: &'static str,
        purpose: &'static str,
    ) -> Result<T, Error> {
        let (kind, _) = T::ALLOWED
            .split_once(" such as ")
            .unwrap_or((T::ALLOWED, ""));
        let allowed = format!("{kind} from {low} to {high}");
        let bounds = T::parse(low).and_then(|low| Ok(low..=T::parse(high)?));
        let accepts = |value: &T| bounds.as_ref().is_ok_and(|bounds| bounds.contains(value));
        self.in_range(name, default, allowed, accepts, purpose)
    }

    /// Like [`Reader::or_default`], for a setting that allows only some values of its type.
    ///
    /// # Errors
    /// It is invalid, or `accepts` refuses it.
    pub fn in_range<T: SettingValue>(
        &mut self,
        name: &'static str,
        default: impl Into<Cow<'static, str>>,
        allowed: impl Into<Cow<'static, str>>,
        accepts: impl Fn(&T) -> bool,
        purpose: &'static str,
    ) -> Result<T, Error> {
        let replaced = self
            .defaults
            .get(name)
            .map(|default| Cow::Borrowed(*default));
        let default = replaced.unwrap_or_else(|| default.into());
        let mut description =
            self.describe::<T>(name, Some(default.clone()), false, allowed, purpose);
        let given = self.given(&mut description)?;
        let text = given.as_deref().unwrap_or(&default);
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
        default: Option<Cow<'static, str>>,
        required: bool,
        allowed: impl Into<Cow<'static, str>>,
        purpose: &'static str,
    ) -> Description {
        let description = Description {
            name,
            old_name: self.old_name.take(),
            default,
            required,
            allowed: allowed.into(),
            secret: T::SECRET,
            purpose,
        };
        self.described.push(description.clone());
        description
    }

    /// The text of a setting, if it is set. `description` gets the name under which it was found.
    fn given(&mut self, description: &mut Description) -> Result<Option<String>, Error> {
        let Source::Given(given) = &self.source else {
            return Ok(None);
        };
        let (name, secret) = (description.name, description.secret);
        let current = look_up(given, name, secret)?;
        let Some(old_name) = description.old_name else {
            return Ok(current);
        };
        let Some(old) = look_up(given, old_name, secret)? else {
            return Ok(current);
        };
        if current.is_some() {
            let warning = format!("{old_name} is ignored because {name} is set. Remove it.");
            self.warnings.push(warning);
            return Ok(current);
        }
        let warning = format!("{old_name} is now {name}. Rename it: the next release ignores it.");
        self.warnings.push(warning);
        description.name = old_name;
        Ok(Some(old))
    }
}

fn settings_file() -> Option<File<FileSourceFile, FileFormat>> {
    let path = std::env::var_os("CONFIG_FILE").filter(|path| !path.is_empty())?;
    Some(File::from(PathBuf::from(path)).format(FileFormat::Toml))
}

/// The names in the TOML file that `CONFIG_FILE` names, as they are written there.
///
/// # Errors
/// The file is missing or is not TOML.
pub fn names_in_file() -> Result<BTreeSet<String>, Error> {
    let table = settings_file().map(|file| file.collect()).transpose()?;
    Ok(table.into_iter().flatten().map(|(name, _)| name).collect())
}

fn look_up(given: &Given, name: &'static str, secret: bool) -> Result<Option<String>, Error> {
    let direct = text_of(given, name)?;
    if !secret {
        return Ok(direct);
    }
    let file = match text_of(given, &format!("{name}_FILE"))? {
        Some(path) => text_of_file(name, path)?,
        None => None,
    };
    if direct.is_some() && file.is_some() {
        return Err(Error::GivenTwice { name });
    }
    Ok(direct.or(file))
}

/// The text of a file without its byte order mark and the end of its last line. An empty file counts as not set, like an empty variable.
fn text_of_file(name: &'static str, path: String) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            // Editors of Windows write a byte order mark, which is no part of a secret.
            let text = text.trim_start_matches('\u{feff}');
            let text = text.trim_end_matches(['\r', '\n']).to_owned();
            Ok(Some(text).filter(|text| !text.is_empty()))
        }
        Err(error) => Err(Error::UnreadableFile { name, path, error }),
    }
}

fn text_of(given: &Given, name: &str) -> Result<Option<String>, Error> {
    let key = name.to_lowercase();
    if given.not_unicode.contains(&key) {
        let name = name.to_owned();
        return Err(Error::NotUnicode { name });
    }
    match given.config.get_string(&key) {
        // In a file, too, an empty value counts as not set.
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(ConfigError::NotFound(_)) => Ok(None),
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
        allowed: description.allowed.clone(),
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

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use values::Secret;

    use super::Reader;

    #[test]
    fn a_variable_that_is_not_utf_8_is_named_without_its_value_if_it_is_a_setting() {
        let broken = || OsString::from_vec(b"s3cret\xff".to_vec());
        let variables = [
            (OsString::from("OTHER"), OsString::from("value")),
            (OsString::from("Password"), broken()),
            (OsString::from("KEY_FILE"), broken()),
            (broken(), broken()),
        ];
        let mut reader = Reader::from_variables(None, variables.into_iter()).unwrap();

        let other: String = reader.required("OTHER", "another one.").unwrap();
        assert_eq!(other, "value");
        for (name, named) in [("PASSWORD", "PASSWORD"), ("KEY", "KEY_FILE")] {
            let error = reader.required::<Secret>(name, "a secret.").unwrap_err();
            let expected = format!("{named} is not valid UTF-8. Set it again.");
            assert_eq!(error.to_string(), expected);
            assert!(!format!("{error:?}").contains("s3cret"));
        }
    }
}
