use std::borrow::Cow;

/// Why a text is invalid: a stable `code` for programs and a `message` for people.
///
/// The message says what is expected. It never repeats the text, which may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// A stable code in kebab case.
    pub code: &'static str,
    /// A sentence without the name of the field.
    pub message: Cow<'static, str>,
}

impl Invalid {
    /// Creates an error.
    pub fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// A type whose values are texts in bodies, paths and queries.
pub trait FromText: Sized {
    /// Parses one value.
    ///
    /// # Errors
    /// Why the text is invalid, in words for the caller.
    fn from_text(text: &str) -> Result<Self, Invalid>;
}
