//! Repeats of requests: a caller that did not get an answer sends the request again with the same `Idempotency-Key`, and
//! gets what was answered: [why](../../../../docs/decisions/repeats-of-requests.md).

mod requests;
pub(crate) mod store;

use std::time::Duration;

use auth::MailKeys;
use jobs::RetentionRule;
use serde_json::{Map, Value};
use values::{Names as _, UserId};

use crate::canonical_json::canonical;
use crate::webhook_signature::SigningSettings;

pub(crate) use requests::{
    IDEMPOTENT_REPLAYED, IdempotencyKeyHeader, RepeatError, Repeated, repeatable,
};
pub(crate) use store::StoredAnswer;

pub(crate) const RETENTION: RetentionRule =
    RetentionRule::of_all("idempotency_keys", "created", Duration::from_hours(24));

pub(crate) fn count(operation: Operation, outcome: &'static str) {
    metrics::counter!("idempotent_requests_total", "operation" => operation.name(), "outcome" => outcome)
        .increment(1);
}

values::names! {
    /// What a request does. The same key of a user for two operations is of two requests.
    pub(crate) enum Operation {
        CreateTask = "create-task",
        RegisterWebhook = "register-webhook",
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Repeatable {
    pub(crate) user: UserId,
    /// By each of the keys, so that replicas recognise it that know only one of them.
    hashes: Vec<Hashes>,
}

/// The hashes of a request by one of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hashes {
    /// Of whose it is, what it does and the key that the caller chose.
    key: [u8; 32],
    body: [u8; 32],
}

/// The keys of the hashes of repeats, and of the secrets that are derived for them: the current one and, while the signing
/// key of webhooks is replaced, the previous one. They are derived from the signing keys.
pub(crate) fn repeat_keys(signing: &SigningSettings) -> MailKeys {
    MailKeys::from_secrets(&signing.key, signing.previous_key.as_ref(), "idempotency")
}

impl Repeatable {
    fn new(
        keys: &MailKeys,
        operation: Operation,
        user: UserId,
        key: &str,
        body: &Map<String, Value>,
    ) -> Self {
        let key_parts: [&[u8]; 3] = [user.as_bytes(), operation.name().as_bytes(), key.as_bytes()];
        let body = canonical(body, body.values());
        let hashes = keys.all().map(|by| Hashes {
            key: by.derive("idempotency key", &key_parts),
            body: by.derive("body", &[&body]),
        });
        Self {
            user,
            hashes: hashes.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use auth::MailKeys;
    use serde_json::{Value, json};
    use values::{Secret, UserId};

    use super::{Operation, Repeatable, repeat_keys};
    use crate::webhook_signature::SigningSettings;

    fn keys(key: &str, previous: Option<&str>) -> MailKeys {
        repeat_keys(&SigningSettings {
            key: Secret::new(key),
            previous_key: previous.map(Secret::new),
        })
    }

    fn request(by: &MailKeys, user: UserId, key: &str, body: &Value) -> Repeatable {
        let body = body.as_object().unwrap();
        Repeatable::new(by, Operation::CreateTask, user, key, body)
    }

    #[test]
    fn a_previous_key_that_is_the_current_one_counts_once() {
        for (previous, count) in [(None, 1), (Some("a\n"), 1), (Some("b"), 2)] {
            let repeatable = request(&keys("a", previous), UserId::generate(), "k", &json!({}));
            assert_eq!(repeatable.hashes.len(), count, "{previous:?}");
        }
    }

    #[test]
    fn bodies_are_the_same_in_their_canonical_form() {
        let (keys, user) = (keys("a", None), UserId::generate());
        let hash = |text: &str| {
            let body = serde_json::from_str(text).unwrap();
            request(&keys, user, "k", &body).hashes[0].body
        };
        let first = hash(r#"{"b": 1.0, "a": {"y": "é", "x": null}}"#);
        assert_eq!(
            hash("{\"a\":{\"x\":null,\"y\":\"\\u00e9\"},\"b\":1e0}"),
            first
        );
        for other in [
            r#"{"b": 1.1, "a": {"y": "é", "x": null}}"#,
            r#"{"b": "1", "a": {"y": "é", "x": null}}"#,
            r#"{"b": 1, "a": {"y": "é"}}"#,
        ] {
            assert_ne!(hash(other), first, "{other}");
        }
        let large = |number| hash(&format!(r#"{{"n": {number}}}"#));
        assert_ne!(large("9007199254740992"), large("9007199254740993"));
    }

    #[test]
    fn a_key_is_of_one_user_and_one_operation() {
        let (keys, body, user) = (keys("a", None), json!({}), UserId::generate());
        let first = request(&keys, user, "k", &body).hashes[0].key;
        assert_ne!(
            request(&keys, UserId::generate(), "k", &body).hashes[0].key,
            first
        );
        assert_ne!(request(&keys, user, "l", &body).hashes[0].key, first);
        let body = body.as_object().unwrap();
        let other = Repeatable::new(&keys, Operation::RegisterWebhook, user, "k", body);
        assert_ne!(other.hashes[0].key, first);
    }

    #[test]
    fn while_the_signing_key_is_replaced_replicas_with_either_recognise_a_request() {
        let (body, user) = (json!({"a": 1}), UserId::generate());
        let hashes = |keys: &MailKeys| request(keys, user, "k", &body).hashes;
        let (old, both, new) = (
            keys("old", None),
            keys("new", Some("old")),
            keys(" new\n", None),
        );
        assert_eq!(hashes(&both), [hashes(&new), hashes(&old)].concat());
    }
}
