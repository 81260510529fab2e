use std::io::Write as _;

use comfy_table::{Table, presets};
use serde_json::Value;

/// Where results go: tables for people, or JSON for programs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

/// A column of a table: its head, and the JSON pointer of its values.
pub(crate) type Column = (&'static str, &'static str);

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Shows a list, with these columns if it is a table.
    pub(crate) fn list(self, columns: &[Column], items: &[Value]) {
        if self.json {
            return print(&pretty(&Value::from(items.to_vec())));
        }
        let rows = items.iter().map(|item| {
            let cells = columns.iter().map(|(_, pointer)| cell(item, pointer));
            cells.collect()
        });
        let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
        print(&table(&heads, rows));
    }

    /// Shows one thing: its members, or as JSON what they are made from.
    pub(crate) fn one(self, item: &Value) {
        if self.json {
            return print(&pretty(item));
        }
        let members = item.as_object().into_iter().flatten();
        let rows = members.map(|(name, value)| vec![name.clone(), text(value)]);
        print(&table(&[], rows));
    }

    /// Says what was done; as JSON, its result.
    pub(crate) fn done(self, sentence: &str, result: &Value) {
        if self.json {
            print(&pretty(result));
        } else {
            print(sentence);
        }
    }

    /// Shows a text that is made for people, or the value that it is made from.
    pub(crate) fn report(self, text: impl FnOnce() -> String, value: &Value) {
        if self.json {
            print(&pretty(value));
        } else {
            print(&text());
        }
    }
}

/// A table without lines, for people and for `grep`.
pub(crate) fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if !heads.is_empty() {
        table.set_header(heads.iter().map(|head| head.to_uppercase()));
    }
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

fn cell(item: &Value, pointer: &str) -> String {
    item.pointer(pointer).map_or_else(String::new, text)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => without_control_characters(text),
        Value::Array(values) if values.iter().all(Value::is_string) => {
            values.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Users choose names and titles, which must not change what a terminal shows.
fn without_control_characters(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// Prints a text and the end of a line. The reader may be gone, as in a pipe to `head`.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{cell, table, text};

    #[test]
    fn a_table_is_aligned_and_has_no_lines() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["long".to_owned(), "2".to_owned()],
        ];
        assert_eq!(
            table(&["name", "n"], rows.into_iter()),
            "NAME  N\na     1\nlong  2"
        );
    }

    #[test]
    fn values_are_shown_as_text() {
        assert_eq!(text(&json!("a\u{1b}[2J\n")), "a\u{fffd}[2J\u{fffd}");
        assert_eq!(text(&json!(["user", "admin"])), "user, admin");
        assert_eq!(text(&json!(null)), "-");
        assert_eq!(cell(&json!({"a": {"b": 7}}), "/a/b"), "7");
        assert_eq!(cell(&json!({}), "/a"), "");
    }
}
