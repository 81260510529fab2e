use http_kit::{FieldValue, json_object};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, ObjectBuilder, SchemaType, Type,
};
use values::{Invalid, Names, Secret, bounded_text};

use crate::header_keys::HeaderPairs;
use crate::tasks::TaskField;
use crate::webhook_options::{
    CallMethod, MAX_HEADER_BYTES, MAX_HEADERS, Success, header_rules, template,
};

const MAX_STATUSES: usize = 20;
const MAX_POINTER: usize = 256;
const MAX_VALUE: usize = 1_024;
/// The gateway can read no schema without a type.
const ANY_BUT_NULL: [Type; 5] = [
    Type::Object,
    Type::Array,
    Type::String,
    Type::Number,
    Type::Boolean,
];
/// Statuses that mean the same for every webhook: it is gone, or overloaded.
const FIXED_STATUSES: [u16; 3] = [410, 429, 503];

/// Fields that the body of calls has beside the usual ones.
#[derive(Debug, Clone)]
pub(crate) struct Include(pub(crate) Vec<TaskField>);

impl FieldValue for Include {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let mut fields = Vec::new();
        for name in Vec::<String>::from_json(value)? {
            let field = TaskField::that_webhooks_include().find(|field| field.name() == name);
            let field = field.ok_or_else(|| {
                let names = TaskField::that_webhooks_include().map(Names::name);
                let names = names.collect::<Vec<_>>().join(", ");
                let message = format!("Must be an array of: {names}.");
                Invalid::new("unknown-field", message)
            })?;
            if !fields.contains(&field) {
                fields.push(field);
            }
        }
        Ok(Self(fields))
    }
}

http_kit::schemas! {
    Include = {
        let names = TaskField::that_webhooks_include().map(Names::name);
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(names));
        let example = json!(["decidedBy", "decisionMade"]);
        ArrayBuilder::new().items(name).examples([example])
    };
}

/// Headers that calls have, with names in lower case.
#[derive(Debug, Clone)]
pub(crate) struct NewHeaders(pub(crate) HeaderPairs);

impl FieldValue for NewHeaders {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let message = "Must be an object whose values are strings.";
        let wrong = || Invalid::new("invalid-type", message);
        let object = value.as_object().ok_or_else(wrong)?;
        if object.len() > MAX_HEADERS {
            return Err(Invalid::new("too-many", "Must be at most 10 headers."));
        }
        let (mut headers, mut bytes) = (HeaderPairs::new(), 0);
        for (name, value) in object {
            let value = value.as_str().ok_or_else(wrong)?;
            bytes += name.len() + value.len();
            let name = header_rules::check(name, value)?;
            if headers.iter().any(|(other, _)| other == name.as_str()) {
                let message =
                    format!("Must have `{name}` once: upper and lower case are the same.");
                return Err(Invalid::new("duplicate-name", message));
            }
            headers.push((name.as_str().to_owned(), Secret::new(value)));
        }
        if headers.is_empty() {
            return Err(Invalid::new("too-short", "Must have at least one header."));
        }
        if bytes > MAX_HEADER_BYTES {
            let message = "Must have at most 4 KiB of names and values together.";
            return Err(Invalid::new("too-long", message));
        }
        Ok(Self(headers))
    }
}

http_kit::schemas! {
    NewHeaders = {
        let value = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1));
        ObjectBuilder::new()
            .additional_properties(Some(AdditionalProperties::RefOr(value.into())))
            .min_properties(Some(1))
            .max_properties(Some(MAX_HEADERS))
            .examples([json!({"Authorization": "Bearer engine-token"})])
    };
}

http_kit::text_fields! {
    CallMethod;
}

/// A body with placeholders.
#[derive(Debug, Clone)]
pub(crate) struct BodyTemplate {
    pub(crate) json: Box<RawValue>,
    /// Whether it has the task's metadata, or a part of it.
    pub(crate) names_metadata: bool,
}

impl FieldValue for BodyTemplate {
    const IS_KEPT: bool = true;

    fn from_json(value: &Value) -> Result<Self, Invalid> {
        template::check(value)?;
        Ok(Self {
            json: raw(value)?,
            names_metadata: template::names_metadata(value),
        })
    }
}

http_kit::schemas! {
    BodyTemplate = {
        let example = json!({"run_input": {"status": "{{status}}", "by": "{{decidedBy}}"}});
        ObjectBuilder::new()
            .schema_type(SchemaType::Array(ANY_BUT_NULL.to_vec()))
            .description(Some("A body with placeholders."))
            .examples([example])
    };
}

impl FieldValue for Success {
    const IS_KEPT: bool = true;

    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let object = json_object(value, MAX_STATUSES * 8 + MAX_POINTER * 8 + MAX_VALUE)?;
        let known = ["status", "pointer", "value"];
        if let Some(name) = object.keys().find(|name| !known.contains(&name.as_str())) {
            let name: String = name.chars().take(40).collect();
            let message = format!("Must have only `status`, `pointer` and `value`, not `{name}`.");
            return Err(Invalid::new("unknown-name", message));
        }
        let status = object.get("status").map(statuses).transpose()?;
        let pointer = object.get("pointer").map(pointer).transpose()?;
        let value = object.get("value").map(raw).transpose()?;
        if status.is_none() && pointer.is_none() {
            return Err(Invalid::new("required", "Must have `status` or `pointer`."));
        }
        if value.is_some() && pointer.is_none() {
            let message = "`value` needs a `pointer`, which may be an empty string.";
            return Err(Invalid::new("required", message));
        }
        if value
            .as_ref()
            .is_some_and(|value| value.get().len() > MAX_VALUE)
        {
            let message = "`value` must have at most 1 KiB as JSON.";
            return Err(Invalid::new("too-long", message));
        }
        Ok(Self {
            status,
            pointer,
            value,
        })
    }
}

fn raw(value: &Value) -> Result<Box<RawValue>, Invalid> {
    to_raw_value(value).map_err(|_| Invalid::new("invalid-type", "Must be JSON."))
}

fn statuses(value: &Value) -> Result<Vec<u16>, Invalid> {
    let wrong = || {
        let message = "`status` must be an array of 1 to 20 whole numbers from 200 to 599, without 300 to 399, 410, 429 and 503: \
             redirects are not followed, and the others mean the same for every webhook.";
        Invalid::new("invalid-status", message)
    };
    let items = value
        .as_array()
        .filter(|items| (1..=MAX_STATUSES).contains(&items.len()));
    let allowed =
        |status: &u16| matches!(status, 200..300 | 400..600) && !FIXED_STATUSES.contains(status);
    let parse = |item: &Value| {
        let status = item.as_u64().and_then(|status| u16::try_from(status).ok());
        status.filter(allowed).ok_or_else(wrong)
    };
    items.ok_or_else(wrong)?.iter().map(parse).collect()
}

fn pointer(value: &Value) -> Result<String, Invalid> {
    let wrong = || {
        let message = "`pointer` must be a JSON pointer (RFC 6901) of at most 256 characters such as `/status`, or an empty string.";
        Invalid::new("invalid-pointer", message)
    };
    let text = value.as_str().ok_or_else(wrong)?;
    let text = bounded_text(text, 0, MAX_POINTER).map_err(|_| wrong())?;
    let begins = text.is_empty() || text.starts_with('/');
    let mut escapes = text.split('~').skip(1);
    if begins && escapes.all(|rest| rest.starts_with(['0', '1'])) {
        Ok(text.to_owned())
    } else {
        Err(wrong())
    }
}

http_kit::schemas! {
    Success = {
        let status = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(200))
            .maximum(Some(599));
        let statuses = ArrayBuilder::new()
            .items(status)
            .min_items(Some(1))
            .max_items(Some(MAX_STATUSES));
        let pointer = ObjectBuilder::new()
            .schema_type(Type::String)
            .max_length(Some(MAX_POINTER));
        let pointer = pointer.pattern(Some("^(/([^~]|~[01])*)?$"));
        let any = [&ANY_BUT_NULL[..], &[Type::Null]].concat();
        let value = ObjectBuilder::new().schema_type(SchemaType::Array(any));
        ObjectBuilder::new()
            .description(Some("When a call has succeeded."))
            .property("status", statuses)
            .property("pointer", pointer)
            .property("value", value)
            .min_properties(Some(1))
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .examples([json!({"status": [200, 201], "pointer": "/status", "value": "ACCEPT"})])
    };
}

#[cfg(test)]
mod tests {
    use http_kit::FieldValue;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{BodyTemplate, CallMethod, Include, NewHeaders, Success};

    fn code<T: FieldValue>(value: &Value) -> Option<&'static str> {
        T::from_json(value).err().map(|invalid| invalid.code)
    }

    #[test]
    fn include_names_fields_of_tasks_that_are_not_about_a_caller() {
        assert_eq!(
            code::<Include>(&json!([
                "decidedBy",
                "decisionMade",
                "comment",
                "metadata",
                "version"
            ])),
            None
        );
        for wrong in [
            "title",
            "isApprover",
            "isRequester",
            "canDecide",
            "approverSecret",
            "",
        ] {
            assert_eq!(
                code::<Include>(&json!(["comment", wrong])),
                Some("unknown-field"),
                "{wrong}"
            );
        }
        assert_eq!(code::<Include>(&json!("comment")), Some("invalid-type"));
        let twice = Include::from_json(&json!(["comment", "comment"])).unwrap();
        assert_eq!(twice.0.len(), 1);
    }

    #[test]
    fn headers_are_ten_of_4_kib_together_and_each_once() {
        let numbered = |number: usize| {
            (0..number)
                .map(|n| (format!("x-{n}"), json!("v")))
                .collect::<Value>()
        };
        assert_eq!(code::<NewHeaders>(&numbered(10)), None);
        assert_eq!(code::<NewHeaders>(&numbered(11)), Some("too-many"));
        let long = |length| json!({"x-a": "v", "x-b": "v".repeat(length)});
        assert_eq!(code::<NewHeaders>(&long(4096 - 7)), None);
        assert_eq!(code::<NewHeaders>(&long(4096 - 6)), Some("too-long"));
        for (wrong, expected) in [
            (json!({}), "too-short"),
            (json!({"x-a": 1}), "invalid-type"),
            (json!(["x-a"]), "invalid-type"),
            (json!({"X-A": "1", "x-a": "2"}), "duplicate-name"),
            (json!({"Host": "a"}), "reserved-header"),
        ] {
            assert_eq!(code::<NewHeaders>(&wrong), Some(expected), "{wrong}");
        }
    }

    #[test]
    fn no_error_repeats_the_value_of_a_header() {
        for wrong in [
            json!({"x-a": "the-secret\u{0}"}),
            json!({"Host": "the-secret"}),
            json!({"content-type": "the-secret"}),
            json!({"x-a": "the-secret", "X-A": "the-secret"}),
        ] {
            let invalid = NewHeaders::from_json(&wrong).unwrap_err();
            assert!(
                !format!("{invalid:?}").contains("the-secret"),
                "{invalid:?}"
            );
        }
    }

    #[test]
    fn methods_are_three() {
        for (method, accepted) in [
            ("POST", true),
            ("PUT", true),
            ("PATCH", true),
            ("GET", false),
            ("DELETE", false),
            ("post", false),
        ] {
            assert_eq!(
                code::<CallMethod>(&json!(method)).is_none(),
                accepted,
                "{method}"
            );
        }
    }

    #[test]
    fn success_has_statuses_or_a_pointer() {
        for right in [
            json!({"status": [200]}),
            json!({"status": [200, 404, 599], "pointer": "", "value": null}),
            json!({"pointer": "/a~0b~1c/0"}),
        ] {
            assert_eq!(code::<Success>(&right), None, "{right}");
        }
        for (wrong, expected) in [
            (json!({}), "required"),
            (json!({"value": 1}), "required"),
            (json!({"status": [200], "value": 1}), "required"),
            (json!({"statuses": [200]}), "unknown-name"),
            (json!({"status": 200}), "invalid-status"),
            (json!({"status": []}), "invalid-status"),
            (json!({"status": ["200"]}), "invalid-status"),
            (json!({"status": [200, 302]}), "invalid-status"),
            (json!({"status": [410]}), "invalid-status"),
            (json!({"status": [429]}), "invalid-status"),
            (json!({"status": [503]}), "invalid-status"),
            (json!({"status": [199]}), "invalid-status"),
            (json!({"status": [600]}), "invalid-status"),
            (json!({"status": vec![200; 21]}), "invalid-status"),
            (json!({"status": null}), "invalid-status"),
            (json!({"pointer": "status"}), "invalid-pointer"),
            (json!({"pointer": "/a~2"}), "invalid-pointer"),
            (json!({"pointer": "/a~"}), "invalid-pointer"),
            (json!({"pointer": 1}), "invalid-pointer"),
            (
                json!({"pointer": format!("/{}", "a".repeat(256))}),
                "invalid-pointer",
            ),
            (
                json!({"pointer": "", "value": "a".repeat(1_023)}),
                "too-long",
            ),
            (json!("ACCEPT"), "invalid-type"),
        ] {
            assert_eq!(code::<Success>(&wrong), Some(expected), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>(), name in any::<String>()) {
            for value in [json!(text), json!([text]), json!({name.clone(): text}), json!({"pointer": text, "value": name})] {
                let _ = (code::<Include>(&value), code::<NewHeaders>(&value), code::<CallMethod>(&value));
                let _ = (code::<BodyTemplate>(&value), code::<Success>(&value));
            }
        }
    }
}
