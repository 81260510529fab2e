//! What counts as success of a call, in place of a status of 2xx.

use reqwest::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;
use values::UntrustedJson;

use crate::canonical_json::canonical;

/// How much of an answer is read to judge it. A longer one is no success.
const MAX_ANSWER: usize = 64 * 1024;

/// What an answer must be for a delivery to count as sent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Success {
    /// The statuses that count, in place of 2xx.
    pub(crate) status: Option<Vec<u16>>,
    /// A JSON pointer (RFC 6901). The answer must be JSON and have that place.
    pub(crate) pointer: Option<String>,
    /// What must be there.
    #[serde(default, deserialize_with = "present")]
    pub(crate) value: Option<Box<RawValue>>,
}

/// A value that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

impl Success {
    /// How many bytes of the answer's body are needed, one more than may be.
    pub(crate) fn needed_bytes(&self) -> usize {
        self.pointer.as_ref().map_or(0, |_| MAX_ANSWER + 1)
    }

    /// Judges an answer by its status and the beginning of its body.
    ///
    /// # Errors
    /// Why it is no success, in words for the webhook's owner. They repeat nothing of the answer.
    pub(crate) fn judge(&self, status: StatusCode, body: &[u8]) -> Result<(), String> {
        let accepts = match &self.status {
            Some(statuses) => statuses.contains(&status.as_u16()),
            None => status.is_success(),
        };
        if !accepts {
            return Err("no success: another status was expected".to_owned());
        }
        let Some(pointer) = &self.pointer else {
            return Ok(());
        };
        if body.len() > MAX_ANSWER {
            return Err("no success: the answer is longer than 64 KiB".to_owned());
        }
        let UntrustedJson(answer) = serde_json::from_slice(body)
            .map_err(|_| "no success: the answer is not JSON".to_owned())?;
        let found = answer.pointer(pointer);
        let found = found.ok_or_else(|| format!("no success: the answer has no `{pointer}`"))?;
        let is_other = |value: &RawValue| {
            let expected = serde_json::from_str(value.get());
            !expected.is_ok_and(|UntrustedJson(expected)| {
                canonical(&expected, [&expected]) == canonical(found, [found])
            })
        };
        if self.value.as_deref().is_some_and(is_other) {
            return Err(format!(
                "no success: `{pointer}` of the answer has another value"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use serde_json::{Value, json};

    use super::{MAX_ANSWER, Success};

    fn judge(success: Value, status: u16, body: &str) -> Result<(), String> {
        let success: Success = serde_json::from_value(success).unwrap();
        success.judge(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn statuses_replace_those_of_2xx() {
        for (success, status, accepted) in [
            (json!({"status": [200, 409]}), 200, true),
            (json!({"status": [200, 409]}), 409, true),
            (json!({"status": [200, 409]}), 201, false),
            (json!({"pointer": ""}), 201, true),
            (json!({"pointer": ""}), 404, false),
        ] {
            assert_eq!(judge(success, status, "{}").is_ok(), accepted, "{status}");
        }
        assert_eq!(judge(json!({"status": [204]}), 204, "not JSON"), Ok(()));
    }

    #[test]
    fn a_pointer_needs_json_with_that_place_and_perhaps_a_value() {
        let body = r#"{"status": "ACCEPT", "a/b": [{"c": null}], "n": 1}"#;
        for (success, body, accepted) in [
            (json!({"pointer": "/status", "value": "ACCEPT"}), body, true),
            (
                json!({"pointer": "/status", "value": "REJECT"}),
                body,
                false,
            ),
            (json!({"pointer": "/status"}), body, true),
            (json!({"pointer": "/other"}), body, false),
            (json!({"pointer": "/a~1b/0/c", "value": null}), body, true),
            (json!({"pointer": "/n", "value": null}), body, false),
            (json!({"pointer": "/n", "value": "1"}), body, false),
            (json!({"pointer": "/n", "value": 1}), body, true),
            (json!({"pointer": "/n", "value": 1.0}), body, true),
            (json!({"pointer": "", "value": [7]}), "[7.0]", true),
            (json!({"pointer": ""}), "null", true),
            (json!({"pointer": ""}), "\"text\"", true),
            (
                json!({"pointer": ""}),
                "n8n is starting up. Please wait",
                false,
            ),
            (json!({"pointer": ""}), "<!DOCTYPE html>", false),
            (json!({"pointer": ""}), "", false),
            (json!({"pointer": ""}), "{} {}", false),
        ] {
            assert_eq!(
                judge(success.clone(), 200, body).is_ok(),
                accepted,
                "{success} {body}"
            );
        }
    }

    #[test]
    fn the_reason_repeats_nothing_of_the_answer() {
        for body in [
            "secret",
            r#"{"status": "secret"}"#,
            r#"{"other": "secret"}"#,
        ] {
            let reason = judge(json!({"pointer": "/status", "value": "x"}), 200, body).unwrap_err();
            assert!(!reason.contains("secret"), "{reason}");
        }
    }

    #[test]
    fn a_long_or_deep_answer_is_no_success() {
        let long = format!("\"{}\"", "a".repeat(MAX_ANSWER - 2));
        assert_eq!(judge(json!({"pointer": ""}), 200, &long), Ok(()));
        assert!(judge(json!({"pointer": ""}), 200, &format!("{long} ")).is_err());
        assert!(judge(json!({"pointer": ""}), 200, &"[".repeat(30_000)).is_err());
    }

    #[test]
    fn a_value_of_an_earlier_version_with_a_reserved_name_is_no_success() {
        let success = r#"{"pointer": "", "value": {"$serde_json::private::RawValue": "1"}}"#;
        let success: Success = serde_json::from_str(success).unwrap();
        assert!(success.judge(StatusCode::OK, b"1").is_err());
    }

    #[test]
    fn a_document_keeps_a_value_of_null() {
        for document in [
            json!({"pointer": "/a", "value": null}),
            json!({"pointer": "/a"}),
            json!({"status": [200]}),
        ] {
            let success: Success = serde_json::from_value(document.clone()).unwrap();
            assert_eq!(serde_json::to_value(success).unwrap(), document);
        }
    }
}
