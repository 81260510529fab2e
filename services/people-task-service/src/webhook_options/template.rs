//! Bodies with placeholders. A template is a JSON value; `{{name}}` in one of its strings stands for a value of the task.
//! Nothing else is evaluated, and values are put into JSON as JSON, never as text into text.

use serde_json::{Map, Value};
use values::{Invalid, Names};

use crate::tasks::{TaskField, is_metadata_key};

/// The largest template, in bytes of compact JSON.
pub(super) const MAX_TEMPLATE: usize = 16 * 1024;
/// What a body may have at most, in bytes. Templates are refused that could exceed it.
const MAX_BODY: usize = 256 * 1024;
const METADATA: &str = "metadata";

/// The placeholders of a string, each after the text before it, and the text after the last one. Braces that are never
/// closed are text.
fn parts(text: &str) -> (Vec<(&str, &str)>, &str) {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{")
        && let Some((name, after)) = after.split_once("}}")
    {
        parts.push((before, name));
        rest = after;
    }
    (parts, rest)
}

/// Checks that a template knows all its names, and that no task makes a body of it that is too large.
pub(super) fn check(template: &Value) -> Result<(), Invalid> {
    let length = template.to_string().len();
    if length > MAX_TEMPLATE {
        let message = "Must have at most 16 KiB as JSON.";
        return Err(Invalid::new("too-long", message));
    }
    let mut most = length;
    for name in names(template) {
        if !is_known(name) {
            return Err(unknown(name));
        }
        most += longest(name);
    }
    if most > MAX_BODY {
        let message = "Has so many placeholders that the body could exceed 256 KiB. `{{description}}` fits twice.";
        return Err(Invalid::new("too-long", message));
    }
    Ok(())
}

/// The names of all placeholders.
fn names(template: &Value) -> Vec<&str> {
    match template {
        Value::String(text) => parts(text).0.into_iter().map(|(_, name)| name).collect(),
        Value::Array(items) => items.iter().flat_map(names).collect(),
        Value::Object(members) => members.values().flat_map(names).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

pub(super) fn names_metadata(template: &Value) -> bool {
    let mut names = names(template).into_iter();
    names.any(|name| name.split('.').next() == Some(METADATA))
}

fn is_known(name: &str) -> bool {
    let has_field = |name| TaskField::of_webhooks().any(|field| field.name() == name);
    match name.split_once('.') {
        Some((METADATA, key)) => is_metadata_key(key),
        Some(_) => false,
        None => has_field(name),
    }
}

fn unknown(name: &str) -> Invalid {
    let names: Vec<_> = TaskField::of_webhooks().map(Names::name).collect();
    let name: String = name.chars().take(40).collect();
    let message = format!(
        "`{{{{{name}}}}}` is unknown. Known names: {}, and `metadata.` with a key.",
        names.join(", ")
    );
    Invalid::new("unknown-name", message)
}

/// The most bytes that the value of a name can have in JSON, where a character takes six bytes at most. The metadata are JSON
/// of 4 KiB, which may be a text in JSON again.
fn longest(name: &str) -> usize {
    match name {
        "description" => 120_002,
        "comment" => 12_002,
        "title" | "approver" | "requester" | "decidedBy" => 3_002,
        _ if name.starts_with(METADATA) => 8_194,
        _ => 512,
    }
}

/// The body that a template makes of the values of a task. A string that is nothing but a placeholder becomes the value;
/// inside of longer strings, the text of it: null is empty, and objects are JSON.
pub(crate) fn render(template: &Value, values: &Map<String, Value>) -> Value {
    match template {
        Value::String(text) => {
            let (parts, rest) = parts(text);
            if let ([("", name)], "") = (parts.as_slice(), rest) {
                return value_of(name, values).clone();
            }
            let mut body = String::new();
            for (before, name) in parts {
                body.push_str(before);
                body.push_str(&text_of(value_of(name, values)));
            }
            Value::String(body + rest)
        }
        Value::Array(items) => items.iter().map(|item| render(item, values)).collect(),
        Value::Object(members) => {
            let rendered = members.iter();
            let rendered = rendered.map(|(name, item)| (name.clone(), render(item, values)));
            Value::Object(rendered.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

fn value_of<'a>(name: &str, values: &'a Map<String, Value>) -> &'a Value {
    let found = match name.split_once('.') {
        Some((object, key)) => values.get(object).and_then(|object| object.get(key)),
        None => values.get(name),
    };
    found.unwrap_or(&Value::Null)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};
    use values::Names as _;

    use super::{MAX_BODY, check, longest, render};
    use crate::tasks::TaskField;

    fn values() -> Map<String, Value> {
        let values = json!({
            "status": "approved", "title": "A \"chair\"\n{{status}}", "decisionBy": null, "version": 3, "public": false,
            "metadata": {"run": 7, "tags": ["a", null], "name": "x"},
        });
        values.as_object().unwrap().clone()
    }

    fn rendered(template: &Value) -> Value {
        render(template, &values())
    }

    #[test]
    fn a_string_that_is_a_placeholder_becomes_the_value() {
        let template = json!({
            "a": "{{status}}", "b": ["{{version}}", "{{public}}", "{{decisionBy}}"], "c": {"d": "{{metadata}}"},
            "e": "{{metadata.run}}", "f": "{{metadata.tags}}", "g": "{{metadata.none}}", "h": 1.5, "i": null,
        });
        let expected = json!({
            "a": "approved", "b": [3, false, null], "c": {"d": {"run": 7, "tags": ["a", null], "name": "x"}},
            "e": 7, "f": ["a", null], "g": null, "h": 1.5, "i": null,
        });
        assert_eq!(rendered(&template), expected);
        assert_eq!(rendered(&json!("{{title}}")), values()["title"]);
    }

    #[test]
    fn inside_of_a_longer_string_it_becomes_the_text() {
        for (template, expected) in [
            ("{{status}}!", "approved!"),
            ("{{status}}{{version}}", "approved3"),
            (" {{status}}", " approved"),
            (
                "<{{decisionBy}}|{{public}}|{{metadata.tags}}>",
                "<|false|[\"a\",null]>",
            ),
            // What a value has is not evaluated again.
            ("<{{title}}>", "<A \"chair\"\n{{status}}>"),
            ("a {{ b", "a {{ b"),
            ("}}{{", "}}{{"),
            ("{}{status}", "{}{status}"),
        ] {
            assert_eq!(rendered(&json!(template)), json!(expected), "{template}");
        }
    }

    #[test]
    fn names_of_members_are_kept() {
        let template = json!({"{{status}}": "{{status}}"});
        assert_eq!(check(&template), Ok(()));
        assert_eq!(rendered(&template), json!({"{{status}}": "approved"}));
    }

    #[test]
    fn every_field_of_a_task_is_known_except_those_about_a_caller() {
        for field in TaskField::ALL {
            let template = json!([{ "x": format!("a{{{{{}}}}}b", field.name()) }]);
            let about_caller = ["isApprover", "isRequester", "canDecide"].contains(&field.name());
            assert_eq!(check(&template).is_err(), about_caller, "{}", field.name());
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        for name in [
            "",
            " status",
            "metadata.",
            "metadata.a.b",
            "metadata.ä",
            "status ",
            "Status",
            "approverSecret",
            "secret",
            "status.x",
            "task.status",
            "a{{status",
            "7*7",
            "status|upper",
            "__proto__",
        ] {
            let invalid = check(&json!({"a": ["b", format!("c {{{{{name}}}}} d")]})).unwrap_err();
            assert_eq!(invalid.code, "unknown-name", "{name}");
            assert!(
                invalid.message.contains("decisionMade"),
                "{}",
                invalid.message
            );
        }
    }

    #[test]
    fn templates_and_what_they_make_have_limits() {
        let long = |length: usize| json!("a".repeat(length));
        assert_eq!(check(&long(16 * 1024 - 2)), Ok(()));
        assert_eq!(check(&long(16 * 1024 - 1)).unwrap_err().code, "too-long");
        let times = |number| json!(["{{description}}"; 3][..number]);
        assert_eq!(check(&times(2)), Ok(()));
        assert_eq!(check(&times(3)).unwrap_err().code, "too-long");
    }

    #[test]
    fn no_body_is_larger_than_its_limit() {
        let name = "description";
        let text = "\u{1}".repeat(20_000);
        assert!(json!(text).to_string().len() <= longest(name));
        let values = json!({name: text});
        let body = render(
            &json!(["{{description}}", "{{description}}"]),
            values.as_object().unwrap(),
        );
        assert!(body.to_string().len() <= MAX_BODY);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[ -~é{}]{0,30}".prop_map(Value::from),
            "([a{}]|status|metadata\\.|title){0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-z{}]{0,9}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn templates_without_braces_stay_as_they_are(template in any_json()) {
            prop_assume!(!template.to_string().contains("{{"));
            prop_assert_eq!(check(&template), Ok(()));
            prop_assert_eq!(rendered(&template), template);
        }

        #[test]
        fn what_is_accepted_has_the_shape_of_its_template(template in any_json()) {
            fn same_shape(template: &Value, body: &Value) -> bool {
                match (template, body) {
                    (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_shape(a, b)),
                    (Value::Object(a), Value::Object(b)) => a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| same_shape(a, b)),
                    (Value::String(_), _) => true,
                    _ => template == body,
                }
            }
            let _ = check(&template);
            prop_assert!(same_shape(&template, &rendered(&template)));
        }

        #[test]
        fn any_value_arrives_unchanged(value in any_json()) {
            let values = json!({"title": value}).as_object().unwrap().clone();
            prop_assert_eq!(render(&json!({"a": "{{title}}"}), &values), json!({"a": value}));
        }
    }
}
