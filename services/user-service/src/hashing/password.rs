use utoipa::ToSchema;
use values::{Invalid, Secret};

/// bcrypt ignores everything after this many bytes.
const MAX_BYTES: usize = 72;

/// The rules for new passwords.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PasswordRules {
    /// The minimum number of characters.
    pub(crate) min_length: usize,
}

/// A password that a user may choose: long enough, and not truncated by bcrypt.
#[derive(Debug, Clone, ToSchema)]
#[schema(
    value_type = String,
    description = "At least 5 characters (the operator can require more), at most 72 bytes.",
    format = Password,
    min_length = 5,
    max_length = 72,
    example = "battery staple"
)]
pub(crate) struct NewPassword(Secret);

impl NewPassword {
    /// Checks a password against the rules.
    ///
    /// # Errors
    /// `too-short` or `too-long`.
    pub(crate) fn parse(text: Secret, rules: PasswordRules) -> Result<Self, Invalid> {
        let min = rules.min_length;
        if text.expose().chars().count() < min {
            let message = format!("Must have at least {min} characters.");
            return Err(Invalid::new("too-short", message));
        }
        if !Password::fits(&text) {
            let message = format!("Must have at most {MAX_BYTES} bytes.");
            return Err(Invalid::new("too-long", message));
        }
        Ok(Self(text))
    }

    /// A password that was verified against its hash. Today's rules do not apply to it.
    pub(crate) fn verified(text: Secret) -> Self {
        Self(text)
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// A password that a caller claims to have. It can be any text.
#[derive(Debug, Clone)]
pub(crate) struct Password(Secret);

impl Password {
    /// The password, unless it is too long for any user to have.
    pub(crate) fn possible(&self) -> Option<&str> {
        Self::fits(&self.0).then(|| self.0.expose())
    }

    fn fits(text: &Secret) -> bool {
        text.expose().len() <= MAX_BYTES
    }
}

impl From<Secret> for Password {
    fn from(text: Secret) -> Self {
        Self(text)
    }
}

impl From<NewPassword> for Password {
    fn from(password: NewPassword) -> Self {
        Self(password.0)
    }
}

#[cfg(test)]
mod tests {
    use values::Secret;

    use super::{NewPassword, Password, PasswordRules};

    fn code(text: &str) -> Option<&'static str> {
        let rules = PasswordRules { min_length: 5 };
        let parsed = NewPassword::parse(Secret::new(text), rules);
        parsed.err().map(|invalid| invalid.code)
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
    fn a_claimed_password_of_more_than_72_bytes_is_no_password() {
        let possible = |length| {
            let password = Password::from(Secret::new("a".repeat(length)));
            password.possible().is_some()
        };
        assert!(possible(72) && !possible(73));
    }
}
