use sha2::{Digest as _, Sha256};

/// The name that somebody signs in by, as it is compared.
#[derive(Debug, Clone)]
pub(crate) struct SignInName(String);

impl SignInName {
    /// Any text is a name; one that no user has is just a wrong one.
    pub(crate) fn new(text: &str) -> Self {
        Self(text.trim().to_lowercase())
    }

    pub(super) fn key(&self) -> &str {
        &self.0
    }

    /// What failures are counted by. A hash, so that unknown names leave no more trace than known ones.
    pub(crate) fn account(&self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }
}
