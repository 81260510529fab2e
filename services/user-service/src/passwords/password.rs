use http_kit::Fields;
use values::{Invalid, Secret};

/// bcrypt looks at so many bytes and no further.
const MAX_BYTES: usize = 72;

/// What a new password must be like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PasswordRules {
    /// Characters that it must have.
    pub(crate) min_length: usize,
}

/// A password that a user may have from now on: long enough, and not cut by bcrypt.
#[derive(Debug, Clone)]
pub(crate) struct NewPassword(Secret);

impl NewPassword {
    /// Checks a password.
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

    /// Reads the field of a body; `None` means that the error was noted.
    pub(crate) fn read(fields: &mut Fields, name: &str, rules: PasswordRules) -> Option<Self> {
        let text = fields.required::<Secret>(name)?;
        Self::checked(fields, name, text, rules)
    }

    /// Like [`NewPassword::read`], for a field that may be absent.
    pub(crate) fn read_optional(
        fields: &mut Fields,
        name: &str,
        rules: PasswordRules,
    ) -> Option<Self> {
        let text = fields.optional::<Secret>(name)?;
        Self::checked(fields, name, text, rules)
    }

    fn checked(
        fields: &mut Fields,
        name: &str,
        text: Secret,
        rules: PasswordRules,
    ) -> Option<Self> {
        let checked = Self::parse(text, rules);
        checked.map_err(|invalid| fields.reject(name, invalid)).ok()
    }

    /// The password that a user was found to have; rules that came later do not matter.
    pub(crate) fn known(text: Secret) -> Self {
        Self(text)
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// A password that somebody claims to have. It may be anything.
#[derive(Debug, Clone)]
pub(crate) struct Password(Secret);

impl Password {
    /// The password, unless no user can have it.
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
