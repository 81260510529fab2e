//! Requests and answers for people's eyes: short, coloured, and without a usable secret.

use std::{
    io::{IsTerminal, Write, stdout},
    time::Duration,
};

use serde_json::Value;

use crate::{demo::client::Call, paint};

const MAX_LINES: usize = 24;
const MAX_ITEMS: usize = 3;
const SHOWN_OF_SECRETS: usize = 8;
const BAR_WIDTH: usize = 30;

/// Announces what the next calls are about.
pub(crate) fn step(number: usize, title: &str) {
    outln!("\n{}", paint::bold(&format!("{number}. {title}")));
}

pub(crate) fn note(text: &str) {
    outln!("   {}", paint::green(text));
}

pub(crate) fn request(call: &Call<'_>) {
    let who = if call.token.is_some() {
        paint::dim(" (with a token)")
    } else {
        String::new()
    };
    outln!("   {} {}{who}", paint::cyan(call.method), path(&call.path));
    if let Some(body) = &call.body {
        print_body(body);
    }
}

pub(crate) fn answer(status: u16, took: Duration, body: &Value) {
    let status = match status {
        200..300 => paint::green(&status.to_string()),
        500.. => paint::red(&status.to_string()),
        _ => paint::yellow(&status.to_string()),
    };
    outln!(
        "   {status} {}",
        paint::dim(&format!("{} ms", took.as_millis()))
    );
    print_body(body);
}

/// Something that the demo engine received.
pub(crate) fn received(item: &Value) {
    let field = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    outln!(
        "   {} at {}: POST {}",
        paint::cyan("engine"),
        field("at"),
        field("path")
    );
    for part in ["query", "body"] {
        outln!("     {part}");
        print_body(item.get(part).unwrap_or(&Value::Null));
    }
}

pub(crate) fn pause(what: &str, trouble: &str, pause: Duration) {
    let text = format!("{what} {trouble}; again in {:.1} s", pause.as_secs_f64());
    outln!("   {}", paint::yellow(&text));
}

/// One line that grows on a terminal, and one line for each change elsewhere.
pub(crate) fn progress(status: &str, done: u64, total: u64) {
    let bar = format!("   {} {done}/{total} {status}", bar(done, total));
    let mut out = stdout().lock();
    // A terminal that is gone ends the program by a signal; there is nothing to do here.
    let _ = if stdout().is_terminal() {
        let end = if status == "in-progress" { "" } else { "\n" };
        write!(out, "\r\x1b[K{bar}{end}").and_then(|()| out.flush())
    } else {
        writeln!(out, "{bar}")
    };
}

fn bar(done: u64, total: u64) -> String {
    let share = done.min(total) * BAR_WIDTH as u64 / total.max(1);
    let filled = usize::try_from(share).unwrap_or(BAR_WIDTH);
    format!(
        "[{}{}]",
        "#".repeat(filled),
        "-".repeat(BAR_WIDTH.saturating_sub(filled))
    )
}

/// A path whose `secret` parameter is cut short.
pub(crate) fn path(path: &str) -> String {
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
    let text = serde_json::to_string_pretty(&without_secrets(body, "")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in lines.iter().take(MAX_LINES) {
        outln!("     {}", paint::dim(line));
    }
    if lines.len() > MAX_LINES {
        outln!(
            "     {}",
            paint::dim(&format!("… {} more lines", lines.len() - MAX_LINES))
        );
    }
}

/// The same value with long lists, tokens, secrets, codes and passwords cut short.
fn without_secrets(value: &Value, key: &str) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), without_secrets(value, key)))
                .collect(),
        ),
        Value::Array(items) => {
            let mut shown: Vec<Value> = items
                .iter()
                .take(MAX_ITEMS)
                .map(|item| without_secrets(item, key))
                .collect();
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
    // A problem's `code` consists of words, a reset's code does not.
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
    match text.char_indices().nth(SHOWN_OF_SECRETS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_cut_and_lists_are_short() {
        let shown = without_secrets(
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
    fn a_secret_in_a_path_is_cut() {
        assert_eq!(path("/a?secret=0123456789&x=1"), "/a?secret=01234567…&x=1");
        assert_eq!(path("/a"), "/a");
    }

    #[test]
    fn the_bar_fills() {
        assert_eq!(bar(0, 8), format!("[{}]", "-".repeat(30)));
        assert_eq!(bar(8, 8), format!("[{}]", "#".repeat(30)));
        assert_eq!(bar(0, 0), format!("[{}]", "-".repeat(30)));
    }
}
