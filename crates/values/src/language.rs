use crate::{FromText, Invalid, Names};

crate::names! {
    /// A language of mails, by its tag (RFC 5646).
    pub enum Language {
        /// English.
        English = "en",
        /// German.
        German = "de",
    }
}

impl FromText for Language {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        Self::from_name(text).ok_or_else(|| {
            let message = format!("Must be one of {}.", Self::list());
            Invalid::new("unknown-value", message)
        })
    }
}
