use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use values::{EmailAddress, FromText, Invalid, Secret, TaskId, Timestamp, UserId, WebhookId};

use crate::{FieldError, Problem, exact_json};

/// Parses a JSON object field by field and collects the errors.
///
/// Unknown fields are ignored, so clients may send back whole objects.
#[derive(Debug)]
pub struct Fields {
    object: Map<String, Value>,
    /// The text of the object; empty for one that was not parsed.
    body: Bytes,
    errors: Vec<FieldError>,
}

impl Fields {
    /// Starts to parse an object.
    pub fn new(object: Map<String, Value>) -> Self {
        Self::of_body(object, Bytes::new())
    }

    pub(crate) fn of_body(object: Map<String, Value>, body: Bytes) -> Self {
        Self {
            object,
            body,
            errors: Vec::new(),
        }
    }

    /// Parses a field that must be present and not null. Records an error if it returns `None`.
    pub fn required<T: FieldValue>(&mut self, name: &str) -> Option<T> {
        if !self.has(name) {
            self.reject(name, Invalid::new("required", "Is required."));
        }
        self.optional(name)
    }

    /// Parses a field that may be absent or null.
    pub fn optional<T: FieldValue>(&mut self, name: &str) -> Option<T> {
        self.nullable(name).flatten()
    }

    /// Parses a field whose absence differs from null: `None` if it is absent or invalid, `Some(None)` if it is null.
    pub fn nullable<T: FieldValue>(&mut self, name: &str) -> Option<Option<T>> {
        let value = self.object.get(name)?;
        if value.is_null() {
            return Some(None);
        }
        let result = self.parse(name, value);
        self.record(name, result).map(Some)
    }

    /// Parses the objects of an array that may be absent or null, each by `parse`, which returns `None` only if it has
    /// recorded an error. The errors of an object name its place, such as `webhooks[1].url`.
    pub fn objects<T>(
        &mut self,
        name: &str,
        max: usize,
        parse: impl Fn(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.object.get(name).filter(|value| !value.is_null())?;
        let objects = array_of_objects(value, max);
        let objects = self.record(name, objects)?;
        let texts = exact_json::elements(&self.body, name);
        let parsed = objects.into_iter().enumerate().map(|(number, object)| {
            let text = texts.get(number).cloned().unwrap_or_default();
            let mut fields = Self::of_body(object, text);
            let parsed = parse(&mut fields);
            for mut error in fields.errors {
                error.field = format!("{name}[{number}].{}", error.field);
                self.errors.push(error);
            }
            parsed
        });
        // All of them are parsed, so that every error is reported.
        let parsed: Vec<Option<T>> = parsed.collect();
        parsed.into_iter().collect()
    }

    /// All fields, as the parser read them.
    pub fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// Records an error, such as one that involves several fields.
    pub fn reject(&mut self, name: &str, invalid: Invalid) {
        self.errors.push(FieldError::new(name, invalid));
    }

    /// Whether a field is present and not null.
    pub fn has(&self, name: &str) -> bool {
        self.object.get(name).is_some_and(|value| !value.is_null())
    }

    /// Returns the value that was made from the fields. It must be `None` only if an error was recorded.
    ///
    /// # Errors
    /// `400 validation-failed` with every recorded error.
    pub fn finish_with<T>(self, value: Option<T>) -> Result<T, Problem> {
        match value {
            Some(value) => self.finish().map(|()| value),
            None => Err(Problem::validation(self.errors)),
        }
    }

    /// Reads all fields of an object that a process of the system has sent. People who write one are told about each field
    /// by the functions above.
    ///
    /// # Errors
    /// `400 validation-failed` about the whole body.
    pub fn deserialized<T: DeserializeOwned>(self) -> Result<T, Problem> {
        serde_json::from_value(Value::Object(self.object)).map_err(|error| {
            let invalid = Invalid::new("invalid-value", error.to_string());
            Problem::invalid_field("body", invalid)
        })
    }

    /// Succeeds if no error was recorded.
    ///
    /// # Errors
    /// `400 validation-failed` with every recorded error.
    pub fn finish(self) -> Result<(), Problem> {
        if self.errors.is_empty() {
            Ok(())
        } else {
            Err(Problem::validation(self.errors))
        }
    }

    fn parse<T: FieldValue>(&self, name: &str, value: &Value) -> Result<T, Invalid> {
        let parsed = T::from_json(value)?;
        if T::IS_KEPT {
            exact_json::check(&self.body, name)?;
        }
        Ok(parsed)
    }

    fn record<T>(&mut self, name: &str, result: Result<T, Invalid>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(invalid) => {
                self.reject(name, invalid);
                None
            }
        }
    }
}

/// A type of fields in JSON bodies.
pub trait FieldValue: Sized {
    /// Whether callers get the JSON back that they sent. Then what the parser would change is refused: numbers with more
    /// digits than are kept, and members with the same name.
    const IS_KEPT: bool = false;

    /// Parses a value that is not null.
    ///
    /// # Errors
    /// Why the value is invalid.
    fn from_json(value: &Value) -> Result<Self, Invalid>;
}

/// The text of a JSON string.
///
/// # Errors
/// The value is not a string.
pub fn json_text(value: &Value) -> Result<&str, Invalid> {
    let wrong = || Invalid::new("invalid-type", "Must be a string.");
    value.as_str().ok_or_else(wrong)
}

/// Implements [`FieldValue`] for types with [`FromText`] that are strings in JSON, and describes those
/// with a schema in OpenAPI.
#[macro_export]
macro_rules! text_fields {
    ($($type:ty $(= $schema:expr)?;)+) => {$(
        impl $crate::FieldValue for $type {
            fn from_json(value: &serde_json::Value) -> Result<Self, values::Invalid> {
                $crate::json_text(value).and_then(<$type as values::FromText>::from_text)
            }
        }

        $($crate::schemas! {
            $type = $schema.schema_type($crate::utoipa::openapi::Type::String);
        })?
    )+};
}

text_fields! {
    String;
    EmailAddress;
    UserId;
    TaskId;
    WebhookId;
    Timestamp;
}

impl FieldValue for Secret {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        String::from_json(value).map(Self::new)
    }
}

impl FieldValue for bool {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("invalid-type", "Must be true or false.");
        value.as_bool().ok_or_else(wrong)
    }
}

impl FieldValue for Vec<String> {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("invalid-type", "Must be an array of strings.");
        let values = value.as_array().ok_or_else(wrong)?;
        let texts = values.iter().map(|value| value.as_str().ok_or_else(wrong));
        texts.map(|t| String::from_text(t?)).collect()
    }
}

fn array_of_objects(value: &Value, max: usize) -> Result<Vec<Map<String, Value>>, Invalid> {
    let wrong = || Invalid::new("invalid-type", "Must be an array of objects.");
    let array = value.as_array().ok_or_else(wrong)?;
    if array.len() > max {
        let message = format!("Must have at most {max} elements.");
        return Err(Invalid::new("too-many", message));
    }
    let objects = array.iter().map(|value| value.as_object().cloned());
    objects.collect::<Option<_>>().ok_or_else(wrong)
}

/// The object of a JSON value that has at most `max_bytes` bytes as JSON without whitespace.
///
/// # Errors
/// The value is not an object, or is too long.
pub fn json_object(value: &Value, max_bytes: usize) -> Result<&Map<String, Value>, Invalid> {
    let wrong = || Invalid::new("invalid-type", "Must be an object.");
    let object = value.as_object().ok_or_else(wrong)?;
    if value.to_string().len() > max_bytes {
        let message = format!("Must have at most {max_bytes} bytes as JSON.");
        return Err(Invalid::new("too-long", message));
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};
    use values::Invalid;

    use super::{FieldValue, Fields};

    fn fields(value: &Value) -> Fields {
        Fields::new(value.as_object().unwrap().clone())
    }

    #[test]
    fn every_invalid_field_is_reported() {
        let mut fields = fields(&json!({"title": 1, "public": "yes", "scope": ["a", 2]}));
        assert_eq!(fields.required::<String>("title"), None);
        assert_eq!(fields.optional::<bool>("public"), None);
        assert_eq!(fields.optional::<Vec<String>>("scope"), None);
        assert_eq!(fields.required::<String>("url"), None);
        let body = fields.finish().unwrap_err().body();
        let codes: Vec<_> = body
            .errors
            .iter()
            .map(|e| (e.field.as_str(), e.code.as_str()))
            .collect();
        assert_eq!(
            codes,
            [
                ("title", "invalid-type"),
                ("public", "invalid-type"),
                ("scope", "invalid-type"),
                ("url", "required")
            ]
        );
    }

    #[test]
    fn the_errors_of_objects_in_an_array_name_their_place() {
        let mut outer = fields(&json!({
            "cats": [{"name": "Tom"}, {"name": 1, "age": "old"}, {}], "dogs": {}, "birds": [1], "fish": [{}, {}],
        }));
        let parse = |cat: &mut Fields| {
            let _ = cat.optional::<bool>("age");
            cat.required::<String>("name")
        };
        assert_eq!(outer.objects("cats", 3, parse), None);
        for name in ["dogs", "birds", "fish"] {
            assert_eq!(outer.objects(name, 1, parse), None);
        }
        assert_eq!(outer.objects("none", 1, parse), None);
        let body = outer.finish().unwrap_err().body();
        let codes = body
            .errors
            .iter()
            .map(|e| (e.field.as_str(), e.code.as_str()));
        let codes: Vec<_> = codes.collect();
        assert_eq!(
            codes,
            [
                ("cats[1].age", "invalid-type"),
                ("cats[1].name", "invalid-type"),
                ("cats[2].name", "required"),
                ("dogs", "invalid-type"),
                ("birds", "invalid-type"),
                ("fish", "too-many"),
            ]
        );
    }

    #[test]
    fn a_field_of_an_object_in_an_array_is_kept_exactly_or_refused() {
        struct Kept;
        impl FieldValue for Kept {
            const IS_KEPT: bool = true;
            fn from_json(_: &Value) -> Result<Self, Invalid> {
                Ok(Self)
            }
        }
        let body = br#"{"all": [{"a": 0.1}, {"a": 0.10000000000000001}]}"#;
        let object = serde_json::from_slice(body).unwrap();
        let mut fields = Fields::of_body(object, Bytes::from_static(body));
        let parsed = fields.objects("all", 2, |fields| fields.required::<Kept>("a"));
        assert!(parsed.is_none());
        let body = fields.finish().unwrap_err().body();
        assert_eq!(body.errors[0].field, "all[1].a");
        assert_eq!(body.errors[0].code, "inexact-number");
    }

    #[test]
    fn null_counts_as_absent_except_for_nullable_fields() {
        let mut fields = fields(&json!({"a": null, "b": null}));
        assert_eq!(fields.optional::<String>("a"), None);
        assert_eq!(fields.nullable::<String>("b"), Some(None));
        assert_eq!(fields.nullable::<String>("c"), None);
        assert!(fields.finish().is_ok());
    }
}
