use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _, stderr, stdin};

use clap::Args;
use comfy_table::{Table, presets};
use serde_json::Value;

use crate::{Failure, Outcome};

/// Where results and questions go.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Output {
    /// Print JSON for programs instead of tables for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Do not ask before something is destroyed.
    #[arg(long, short, global = true)]
    yes: bool,
}

/// A column of a table: its head, and the JSON pointer of its values.
pub(crate) type Column = (&'static str, &'static str);

impl Output {
    /// Ends a command with a list, with these columns if it is a table.
    pub(crate) fn list(self, columns: &[Column], items: Vec<Value>) -> Outcome {
        let rows = items.iter().map(|item| {
            let cells = columns.iter().map(|(_, pointer)| cell(item, pointer));
            cells.collect()
        });
        let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
        let text = table(&heads, rows);
        self.done(&text, &Value::from(items))
    }

    /// Ends a command with one thing: its members, or as JSON what they are made from.
    pub(crate) fn one(self, item: &Value) -> Outcome {
        let members = item.as_object().into_iter().flatten();
        let rows = members.map(|(name, value)| vec![name.clone(), shown(value)]);
        self.done(&table(&[], rows), item)
    }

    /// Ends a command with a text that says what was done; as JSON, with its result.
    pub(crate) fn done(self, text: &str, result: &Value) -> Outcome {
        if self.json {
            print(&escaped(&format!("{result:#}")))
        } else {
            print(text)
        }
    }

    /// Says what happens meanwhile; on standard error if a program reads the output.
    pub(crate) fn note(self, sentence: &str) -> Outcome {
        if self.json {
            telemetry::print_error(sentence.to_owned());
            return Ok(());
        }
        print(sentence)
    }

    /// Asks a person before something is destroyed. It is refused without a terminal, where no one could answer.
    pub(crate) fn confirm(self, question: &str) -> Outcome {
        if self.yes {
            return Ok(());
        }
        if !stdin().is_terminal() {
            return Err(Failure::Refused(format!(
                "{question} Nothing was done: there is no terminal to ask at. Add --yes to do it."
            )));
        }
        ask(question)
    }

    /// Asks a person what no option can confirm. It is refused with `--yes` and without a terminal: `remedy` says what
    /// to do then.
    pub(crate) fn confirm_in_person(self, question: &str, remedy: &str) -> Outcome {
        if self.yes || !stdin().is_terminal() {
            let refused = format!("{question} Nothing was done. {remedy}");
            return Err(Failure::Refused(refused));
        }
        ask(question)
    }
}

fn ask(question: &str) -> Outcome {
    let _ = write!(stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::Failed(error.into()))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Refused("Nothing was done.".to_owned()))
    }
}

/// A member of an object; null if there is none.
pub(crate) fn member<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// A text of an object; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    member(value, name).as_str().unwrap_or_default()
}

pub(crate) fn set(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
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
    item.pointer(pointer).map_or_else(String::new, shown)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => without_control_characters(text),
        Value::Array(values) if values.iter().all(Value::is_string) => {
            values.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        other => escaped(&other.to_string()),
    }
}

fn without_control_characters(text: &str) -> String {
    text.replace(changes_terminal, "\u{fffd}")
}

/// JSON in which the characters that serde_json leaves as they are and that change what a terminal shows are escaped.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        if changes_terminal(character) && character != '\n' {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// Users choose names and titles, which must not change what a terminal shows: control characters do, and those that turn the
/// direction of text.
fn changes_terminal(character: char) -> bool {
    let turns = matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control()
}

/// Prints a text and the end of a line.
fn print(text: &str) -> Outcome {
    Ok(telemetry::print(&format!("{text}\n"))?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{cell, changes_terminal, escaped, shown, table};

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
        assert_eq!(shown(&json!("a\u{1b}[2J\n")), "a\u{fffd}[2J\u{fffd}");
        assert_eq!(shown(&json!("a\u{9b}2J\u{202e}b")), "a\u{fffd}2J\u{fffd}b");
        assert_eq!(shown(&json!(["user", "admin"])), "user, admin");
        assert_eq!(shown(&json!(null)), "-");
        assert_eq!(cell(&json!({"a": {"b": 7}}), "/a/b"), "7");
        assert_eq!(cell(&json!({}), "/a"), "");
    }

    #[test]
    fn json_is_the_same_without_characters_that_change_a_terminal() {
        let raw: String = ('\0'..='\u{a0}').chain('\u{600}'..='\u{2070}').collect();
        for value in [json!([{"error": raw}]), json!({raw: "é"})] {
            let text = escaped(&format!("{value:#}"));
            assert!(!text.replace('\n', "").contains(changes_terminal));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            assert_eq!(shown(&json!([value])), escaped(&json!([value]).to_string()));
        }
        let printed = escaped(&format!("{:#}", json!(["\u{9b}2J", "\u{2066}é"])));
        assert_eq!(printed, "[\n  \"\\u009b2J\",\n  \"\\u2066é\"\n]");
    }
}
