use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{FromText, Invalid};

const MAX_LENGTH: usize = 254;
const MAX_LOCAL_LENGTH: usize = 64;
const MAX_LABEL_LENGTH: usize = 63;

/// An e-mail address: `local@domain` with a dot-atom before the sign and a host name after it
/// (RFC 5321 section 4.1.2 without quoted strings and address literals), at most 254 characters.
///
/// It keeps the case of its letters, but comparisons ignore it: see [`EmailAddress::normalized`].
/// It has no `Display` and a redacted `Debug`, so that no address is logged by accident.
#[derive(Clone, derive_more::Debug)]
#[debug("EmailAddress(…)")]
#[cfg_attr(feature = "diesel", derive(diesel::deserialize::FromSqlRow))]
pub struct EmailAddress {
    given: String,
    normalized: String,
}

impl EmailAddress {
    /// The address as it was given, without surrounding whitespace.
    pub fn as_str(&self) -> &str {
        &self.given
    }

    /// The lower-case form. Addresses with the same normalized form are equal.
    pub fn normalized(&self) -> &str {
        &self.normalized
    }
}

impl FromText for EmailAddress {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let given = text.trim();
        if given.len() > MAX_LENGTH {
            let message = "Must have at most 254 characters.";
            return Err(Invalid::new("too-long", message));
        }
        let well_formed = given
            .rsplit_once('@')
            .is_some_and(|(local, domain)| is_dot_atom(local) && is_host_name(domain));
        if !given.is_ascii() && given.contains('@') {
            return Err(Invalid::new(
                "invalid-email",
                "Must be an e-mail address of ASCII characters. Write a domain with other letters in punycode, such as xn--mnchen-3ya.example.",
            ));
        }
        if !well_formed {
            let message = "Must be an e-mail address such as ada@example.com.";
            return Err(Invalid::new("invalid-email", message));
        }
        Ok(Self {
            given: given.to_owned(),
            normalized: given.to_ascii_lowercase(),
        })
    }
}

fn is_dot_atom(local: &str) -> bool {
    let is_atom_character =
        |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+/=?^_`{|}~-".contains(c);
    let is_atom = |atom: &str| !atom.is_empty() && atom.chars().all(is_atom_character);
    local.len() <= MAX_LOCAL_LENGTH && local.split('.').all(is_atom)
}

fn is_host_name(domain: &str) -> bool {
    domain.split('.').all(|label| {
        (1..=MAX_LABEL_LENGTH).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

impl PartialEq for EmailAddress {
    fn eq(&self, other: &Self) -> bool {
        self.normalized == other.normalized
    }
}

impl Eq for EmailAddress {}

impl Serialize for EmailAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.given)
    }
}

impl<'de> Deserialize<'de> for EmailAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_text(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for EmailAddress {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("An e-mail address of ASCII characters; a domain with other letters is written in punycode. Whitespace around it is removed."))
            .format(Some(SchemaFormat::Custom("email".to_owned())))
            .max_length(Some(MAX_LENGTH))
            .examples(["ada@example.com"])
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for EmailAddress {}

/// Parses a stored address again.
#[cfg(feature = "diesel")]
impl diesel::deserialize::FromSql<diesel::sql_types::Text, diesel::pg::Pg> for EmailAddress {
    fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
        Ok(Self::from_text(str::from_utf8(value.as_bytes())?)?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EmailAddress, FromText};

    fn parses(text: &str) -> bool {
        EmailAddress::from_text(text).is_ok()
    }

    #[test]
    fn ordinary_addresses_are_valid() {
        for text in [
            "ada@example.com",
            "ada.lovelace+tasks@mail.example.co.uk",
            "o'hara@example.com",
            "root@localhost",
            "1@2.de",
        ] {
            assert!(parses(text), "{text}");
        }
    }

    #[test]
    fn other_texts_are_invalid() {
        for text in [
            "",
            "@",
            "ada",
            "ada@",
            "@example.com",
            "ada@@example.com",
            "ada@example..com",
            "ada@-example.com",
            ".ada@example.com",
            "ada.@example.com",
            "a..b@example.com",
            "ada lovelace@example.com",
            "ada@exam ple.com",
            "ada@example.com\r\nBcc: eve@example.com",
            "ada@example.com\0",
            "\"ada\"@example.com",
            "Ada <ada@example.com>",
            "ada@[127.0.0.1]",
            "ädä@example.com",
        ] {
            assert!(!parses(text), "{text:?}");
        }
        assert!(!parses(&format!("{}@example.com", "a".repeat(65))));
        assert!(!parses(&format!("a@{}.com", "b".repeat(64))));
        assert!(!parses(&format!("a@{}com", "b.".repeat(130))));
    }

    #[test]
    fn an_address_beyond_ascii_is_refused_with_a_hint() {
        for text in ["müller@example.com", "info@münchen.example"] {
            let error = format!("{:?}", EmailAddress::from_text(text).unwrap_err());
            assert!(
                error.contains("invalid-email") && error.contains("punycode"),
                "{error}"
            );
        }
        assert!(parses("info@xn--mnchen-3ya.example"));
    }

    #[test]
    fn whitespace_is_trimmed_and_comparisons_ignore_case() {
        let one = EmailAddress::from_text("  Ada@Example.com ").unwrap();
        let other = EmailAddress::from_text("ada@example.COM").unwrap();
        assert_eq!(one.as_str(), "Ada@Example.com");
        assert_eq!(one, other);
        assert_eq!(format!("{one:?}"), "EmailAddress(…)");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = EmailAddress::from_text(&text);
        }

        #[test]
        fn parsing_a_parsed_address_changes_nothing(text in "[a-zA-Z0-9.+_-]{1,20}@[a-z0-9.-]{1,30}") {
            if let Ok(address) = EmailAddress::from_text(&text) {
                let again = EmailAddress::from_text(address.as_str()).unwrap();
                prop_assert_eq!(again.as_str(), address.as_str());
                prop_assert!(!address.as_str().contains(char::is_whitespace));
            }
        }
    }
}
