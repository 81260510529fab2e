use std::borrow::Cow;

/// Why a text is not a value of some type: a stable `code` for programs and a `message` for people.
///
/// The message says what is expected and never repeats the text, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// Kebab-case and stable.
    pub code: &'static str,
    /// A whole sentence without the field's name.
    pub message: Cow<'static, str>,
}

impl Invalid {
    /// An error with a stable code and a sentence for people.
    pub fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A type whose values are written as text in bodies, paths and queries.
pub trait FromText: Sized {
    /// Parses one value.
    ///
    /// # Errors
    /// What is wrong with the text, in words that may be shown to the caller.
    fn from_text(text: &str) -> Result<Self, Invalid>;
}
