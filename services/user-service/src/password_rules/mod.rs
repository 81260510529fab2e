//! Passwords as values: the rules for new ones, and the forms of one that someone claims to have.

mod requests;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use utoipa::ToSchema;
use values::{Invalid, Secret};

/// bcrypt ignores everything after this many bytes.
const MAX_BYTES: usize = 72;

#[derive(Debug, Clone, Copy)]
pub(crate) struct PasswordRules {
    /// The minimum number of characters.
    pub(crate) min_length: usize,
}

/// A password that a user may choose, in NFC as RFC 8265 says: long enough, and not truncated by bcrypt.
#[derive(Debug, Clone, ToSchema)]
#[schema(
    value_type = String,
    description = "At least 5 characters (the operator can require more), at most 72 bytes, both in Unicode's normal form C.",
    format = Password,
    min_length = 5,
    max_length = 72,
    example = "battery staple"
)]
pub(crate) struct NewPassword(Secret);

impl NewPassword {
    /// Normalises a password and checks it against the rules.
    pub(crate) fn parse(text: &Secret, rules: PasswordRules) -> Result<Self, Invalid> {
        let text = nfc(text);
        let min = rules.min_length;
        if text.expose().chars().count() < min {
            let message = format!("Must have at least {min} characters.");
            return Err(Invalid::new("too-short", message));
        }
        if !fits(&text) {
            let message = format!("Must have at most {MAX_BYTES} bytes.");
            return Err(Invalid::new("too-long", message));
        }
        Ok(Self(text))
    }

    /// A password that no one chooses, so the rules do not apply to it.
    pub(crate) fn random() -> Self {
        Self(Secret::random())
    }

    /// A password that was verified against its hash. Today's rules do not apply to it, but normalising may make it
    /// too long for bcrypt: then it keeps the hash that it has.
    pub(crate) fn verified(text: &Secret) -> Option<Self> {
        Some(nfc(text)).filter(fits).map(Self)
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// Why a service account gets no password.
pub(crate) fn service_password() -> Invalid {
    let message = "Must be absent: a service account has no password, but API keys.";
    Invalid::new("not-for-service-accounts", message)
}

/// A form of a password that a caller claims to have, which can be any text.
pub(crate) struct PasswordForm {
    pub(crate) text: Secret,
    pub(crate) is_normal: bool,
}

impl PasswordForm {
    /// The forms of a password that a stored hash may have: NFC, and, for hashes that were made before passwords were
    /// normalised, the text as typed and NFD. Equal ones are one form, and those that are too long for any user to have
    /// are left out. So most passwords have one form, and the number tells nothing about an account.
    pub(crate) fn of(password: &Secret) -> Vec<Self> {
        let normal = nfc(password);
        let mut forms: Vec<Self> = Vec::with_capacity(1);
        for text in [normal.clone(), password.clone(), nfd(password)] {
            let is_new = |form: &Self| form.text.expose() != text.expose();
            if fits(&text) && forms.iter().all(is_new) {
                let is_normal = text.expose() == normal.expose();
                forms.push(Self { text, is_normal });
            }
        }
        forms
    }
}

fn fits(text: &Secret) -> bool {
    text.expose().len() <= MAX_BYTES
}

fn nfc(text: &Secret) -> Secret {
    Secret::new(ComposingNormalizerBorrowed::new_nfc().normalize(text.expose()))
}

fn nfd(text: &Secret) -> Secret {
    Secret::new(DecomposingNormalizerBorrowed::new_nfd().normalize(text.expose()))
}

#[cfg(test)]
mod tests {
    use values::Secret;

    use super::{NewPassword, PasswordForm, PasswordRules};

    const COMPOSED: &str = "caf\u{e9}s";
    const DECOMPOSED: &str = "cafe\u{301}s";
    /// One accent in each form.
    const MIXED: &str = "\u{e9}e\u{301}";

    fn code(text: &str) -> Option<&'static str> {
        let rules = PasswordRules { min_length: 5 };
        let parsed = NewPassword::parse(&Secret::new(text), rules);
        parsed.err().map(|invalid| invalid.code)
    }

    fn forms(text: impl Into<String>) -> Vec<(String, bool)> {
        let forms = PasswordForm::of(&Secret::new(text));
        let form = |form: &PasswordForm| (form.text.expose().to_owned(), form.is_normal);
        forms.iter().map(form).collect()
    }

    #[test]
    fn characters_count_at_the_lower_end_and_bytes_at_the_upper() {
        assert_eq!(code("1234"), Some("too-short"));
        assert_eq!(code("éééé"), Some("too-short"));
        assert_eq!(code("12345"), None);
        assert_eq!(code(&"a".repeat(72)), None);
        assert_eq!(code(&"a".repeat(73)), Some("too-long"));
        assert_eq!(code(&"é".repeat(37)), Some("too-long"));
    }

    #[test]
    fn characters_and_bytes_are_those_of_the_normal_form() {
        let decomposed = "e\u{301}";
        assert_eq!(code(&decomposed.repeat(4)), Some("too-short"));
        assert_eq!(code(&decomposed.repeat(5)), None);
        assert_eq!(code(&decomposed.repeat(36)), None);
        assert_eq!(code(&decomposed.repeat(37)), Some("too-long"));
        // The normal form of this character has twice as many bytes.
        assert_eq!(code(&"\u{958}".repeat(12)), None);
        assert_eq!(code(&"\u{958}".repeat(13)), Some("too-long"));
    }

    #[test]
    fn a_password_has_as_many_forms_as_differ() {
        let composed = || (COMPOSED.to_owned(), true);
        let decomposed = || (DECOMPOSED.to_owned(), false);
        assert_eq!(forms("correct horse"), [("correct horse".to_owned(), true)]);
        assert_eq!(forms(COMPOSED), [composed(), decomposed()]);
        assert_eq!(forms(DECOMPOSED), [composed(), decomposed()]);
        let mixed: Vec<_> = forms(MIXED).into_iter().map(|(text, _)| text).collect();
        assert_eq!(mixed, ["\u{e9}\u{e9}", MIXED, "e\u{301}e\u{301}"]);
        // Only NFC, and neither compatibility forms nor case or width, is the same password.
        assert_eq!(forms("ﬁＡ\u{a0}x"), [("ﬁＡ\u{a0}x".to_owned(), true)]);
    }

    #[test]
    fn a_form_of_more_than_72_bytes_is_left_out() {
        assert_eq!(forms("a".repeat(72)).len(), 1);
        assert_eq!(forms("a".repeat(73)), []);
        let long = "\u{e9}".repeat(36);
        assert_eq!(forms(&long), [(long, true)]);
        let typed = "\u{958}".repeat(24);
        assert_eq!(forms(&typed), [(typed.clone(), false)]);
        assert!(NewPassword::verified(&Secret::new(typed)).is_none());
    }
}
