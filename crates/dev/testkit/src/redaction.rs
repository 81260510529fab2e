use serde_json::Value;

/// Replaces values that differ in each run, for snapshots: identifiers by `[id]`, times by `[time]`, and request
/// ids, tokens, tickets and secrets by their field's name in brackets.
pub fn redact(value: &Value) -> Value {
    redact_field("", value)
}

fn redact_field(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), redact_field(name, value)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| redact_field(name, item)).collect(),
        Value::String(text) => redact_text(name, text).into(),
        other => other.clone(),
    }
}

fn redact_text(name: &str, text: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if matches!(lower.as_str(), "requestid" | "token" | "ticket") || lower.ends_with("secret") {
        return format!("[{name}]");
    }
    if text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return "[id]".to_owned();
    }
    // A time such as `2026-01-31T12:00:00.000Z`.
    let bytes = text.as_bytes();
    if text.ends_with('Z') && bytes.get(4) == Some(&b'-') && bytes.get(10) == Some(&b'T') {
        return "[time]".to_owned();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_differ_in_each_run_are_replaced() {
        let value = json!({
            "id": "0123456789abcdef01234567",
            "created": "2026-01-31T12:00:00.000Z",
            "requestId": "r-1",
            "items": [{"approverSecret": "s", "title": "Buy a chair", "count": 1}],
        });
        let redacted = json!({
            "id": "[id]",
            "created": "[time]",
            "requestId": "[requestId]",
            "items": [{"approverSecret": "[approverSecret]", "title": "Buy a chair", "count": 1}],
        });
        assert_eq!(redact(&value), redacted);
    }
}
