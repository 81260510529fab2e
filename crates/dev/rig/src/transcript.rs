//! Prints requests and responses: shortened, coloured, and without secrets.

use std::time::Duration;

use serde_json::Value;

use crate::outln;
use crate::paint::{BOLD, CYAN, DIM, GREEN, RED, YELLOW};

const MAX_LINES: usize = 24;
const MAX_ITEMS: usize = 3;
const SECRET_PREFIX_LENGTH: usize = 8;

pub fn step(number: usize, title: &str) {
    outln!("\n{BOLD}{number}. {title}{BOLD:#}");
}

pub fn note(text: &str) {
    outln!("   {GREEN}{text}{GREEN:#}");
}

/// Prints a call that is about to be made, without secrets.
pub fn request(method: &str, call_path: &str, token: Option<&str>, body: Option<&Value>) {
    let note = token.map_or("", |_| " (with a token)");
    let path = path(call_path);
    outln!("   {CYAN}{method}{CYAN:#} {path}{DIM}{note}{DIM:#}");
    if let Some(body) = body {
        print_body(body);
    }
}

/// Prints the response, without secrets.
pub fn response(status: u16, took: Duration, body: &Value) {
    let style = match status {
        200..300 => GREEN,
        500.. => RED,
        _ => YELLOW,
    };
    let took = took.as_millis();
    outln!("   {style}{status}{style:#} {DIM}{took} ms{DIM:#}");
    print_body(body);
}

/// Prints an item that the demo engine received.
pub fn received(item: &Value) {
    let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    let (at, path) = (field("at"), field("path"));
    outln!("   {CYAN}engine{CYAN:#} at {at}: POST {path}");
    for part in ["query", "body"] {
        outln!("     {part}");
        print_body(item.get(part).unwrap_or(&Value::Null));
    }
}

/// Says that a call failed and is repeated after a pause.
pub fn pause(call: &str, failure: &str, pause: Duration) {
    let pause = pause.as_secs_f64();
    outln!("   {YELLOW}{call} {failure}; trying again in {pause:.1} s{YELLOW:#}");
}

/// Returns a path whose `secret` parameter is shortened.
pub fn path(path: &str) -> String {
    let Some((before, query)) = path.split_once('?') else {
        return path.to_owned();
    };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some(("secret", value)) => format!("secret={}", cut(value)),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{before}?{}", parameters.join("&"))
}

fn print_body(body: &Value) {
    if matches!(body, Value::String(text) if text.is_empty()) {
        return;
    }
    let text = serde_json::to_string_pretty(&redact(body, "")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(MAX_LINES) {
        outln!("     {DIM}{line}{DIM:#}");
    }
    if lines.len() > MAX_LINES {
        let more = lines.len() - MAX_LINES;
        outln!("     {DIM}… {more} more lines{DIM:#}");
    }
}

/// Returns the value with shortened lists, tokens, secrets, codes and passwords.
fn redact(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let redacted = fields.map(|(key, value)| (key.clone(), redact(value, key)));
            redacted.collect()
        }
        Value::Array(items) => {
            let shown = items.iter().take(MAX_ITEMS);
            let mut shown: Vec<Value> = shown.map(|item| redact(item, key)).collect();
            if items.len() > MAX_ITEMS {
                shown.push(Value::String(format!("… {} more", items.len() - MAX_ITEMS)));
            }
            Value::Array(shown)
        }
        Value::String(text) if is_secret(key, text) => Value::String(cut(text)),
        other => other.clone(),
    }
}

fn is_secret(key: &str, text: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // The `code` of a problem consists of words, the code of a password reset does not.
    let is_word = || {
        text.chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '-')
    };
    match key.as_str() {
        "code" => !is_word(),
        "token" | "ticket" | "link" => true,
        _ => key.ends_with("secret") || key.ends_with("password"),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SECRET_PREFIX_LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_and_lists_are_shortened() {
        let shown = redact(
            &json!({
                "token": "eyJhbGciOiJFZERTQSJ9.x.y",
                "approverSecret": "0123456789abcdef",
                "code": "email-taken",
                "password": "word",
                "title": "Buy a chair",
                "list": [1, 2, 3, 4, 5],
            }),
            "",
        );
        let expected = json!({
            "token": "eyJhbGci…",
            "approverSecret": "01234567…",
            "code": "email-taken",
            "password": "…",
            "title": "Buy a chair",
            "list": [1, 2, 3, "… 2 more"],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_secret_in_a_path_is_shortened() {
        assert_eq!(path("/a?secret=0123456789&x=1"), "/a?secret=01234567…&x=1");
        assert_eq!(path("/a"), "/a");
    }
}
