use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{FromText, Invalid};

const LENGTH: usize = 12;

/// Twelve bytes that sort by age: the seconds since 1970 (big-endian), then eight random bytes.
fn fresh_bytes() -> [u8; LENGTH] {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let mut bytes = [0; LENGTH];
    let (age, random) = bytes.split_at_mut(4);
    // Four bytes of seconds last until the year 2106.
    age.copy_from_slice(seconds.to_be_bytes().split_at(4).1);
    random.copy_from_slice(&rand::random::<[u8; 8]>());
    bytes
}

fn parse_hex(text: &str) -> Result<[u8; LENGTH], Invalid> {
    let lower_case = !text.bytes().any(|byte| byte.is_ascii_uppercase());
    let mut bytes = [0; LENGTH];
    match hex::decode_to_slice(text, &mut bytes) {
        Ok(()) if lower_case => Ok(bytes),
        _ => Err(Invalid::new(
            "invalid-id",
            "Must be an identifier of 24 lower-case hexadecimal digits.",
        )),
    }
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        ///
        /// Twelve bytes, written as 24 lower-case hexadecimal digits; identifiers sort by age.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Debug, derive_more::Display)]
        #[debug("{}({self})", stringify!($name))]
        #[display("{}", hex::encode(_0))]
        #[cfg_attr(feature = "diesel", derive(diesel::expression::AsExpression, diesel::deserialize::FromSqlRow))]
        #[cfg_attr(feature = "diesel", diesel(sql_type = diesel::sql_types::Binary))]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(
            value_type = String,
            description = "24 lower-case hexadecimal digits.",
            pattern = "^[0-9a-f]{24}$",
            example = "65b8f0a2c3d4e5f601234567"
        ))]
        pub struct $name([u8; LENGTH]);

        impl $name {
            /// Generates an identifier from the current time.
            pub fn generate() -> Self {
                Self(fresh_bytes())
            }

            /// The twelve bytes, as stored in the database.
            pub fn as_bytes(&self) -> &[u8; LENGTH] {
                &self.0
            }
        }

        impl FromText for $name {
            fn from_text(text: &str) -> Result<Self, Invalid> {
                parse_hex(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::from_text(&text).map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "diesel")]
        impl diesel::serialize::ToSql<diesel::sql_types::Binary, diesel::pg::Pg> for $name {
            fn to_sql<'b>(
                &'b self,
                out: &mut diesel::serialize::Output<'b, '_, diesel::pg::Pg>,
            ) -> diesel::serialize::Result {
                std::io::Write::write_all(out, &self.0)?;
                Ok(diesel::serialize::IsNull::No)
            }
        }

        #[cfg(feature = "diesel")]
        impl diesel::deserialize::FromSql<diesel::sql_types::Binary, diesel::pg::Pg> for $name {
            fn from_sql(value: diesel::pg::PgValue<'_>) -> diesel::deserialize::Result<Self> {
                Ok(Self(value.as_bytes().try_into()?))
            }
        }
    )+};
}

identifiers! {
    /// A user account.
    UserId
    /// A task that a person approves or rejects.
    TaskId
    /// A webhook of a task.
    WebhookId
    /// The delivery of a decision to a webhook: the `webhook-id` header of every attempt.
    DeliveryId
    /// A job that deletes a user. It is not the ticket, which is a secret.
    DeletionId
    /// A message to a user over one channel.
    NotificationId
    /// A mail about a task.
    MailId
    /// A credential of a user that can be revoked alone, such as the session of a browser.
    CredentialId
    /// What an entry of the revocation feed is about: a user, or one of a user's credentials. Both are random, so neither can
    /// be taken for the other.
    RevocableId
}

impl From<UserId> for RevocableId {
    fn from(UserId(bytes): UserId) -> Self {
        Self(bytes)
    }
}

impl From<CredentialId> for RevocableId {
    fn from(CredentialId(bytes): CredentialId) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{FromText, TaskId, UserId};

    #[test]
    fn an_identifier_is_24_lower_case_hex_digits_and_starts_with_the_time() {
        let before = chrono::Utc::now().timestamp();
        let text = UserId::generate().to_string();
        assert_eq!(text.len(), 24);
        let seconds = i64::from_str_radix(&text[..8], 16).unwrap();
        assert!((before..before + 5).contains(&seconds));
        assert_eq!(UserId::from_text(&text).unwrap().to_string(), text);
    }

    #[test]
    fn other_texts_are_invalid() {
        for text in [
            "",
            "1",
            "65a0000000000000000000zz",
            "65A000000000000000000000",
            "65a0000000000000000000001",
        ] {
            assert!(TaskId::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn identifiers_are_hex_in_json() {
        let id = TaskId::generate();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<TaskId>(&json).unwrap(), id);
    }
}
