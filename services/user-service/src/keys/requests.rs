use auth::KeyScope;
use chrono::{DateTime, Datelike as _, Utc};
use http_kit::{FieldValue, Fields, Problem, Query};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::SchemaFormat;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};
use values::{FromText, Invalid, Names as _, visible_text};

use super::DEFAULT_SCOPES;

const MAX_NAME: usize = 100;
/// The last year that every client can write.
const LAST_YEAR: i32 = 9999;

/// The body of the creation of a key.
#[derive(Debug, ToSchema)]
pub(super) struct CreateKeyRequest {
    #[schema(inline)]
    pub(super) name: KeyName,
    #[schema(value_type = Option<KeyScopes>, inline)]
    pub(super) scopes: Vec<KeyScope>,
    /// When it ends by itself; never by default.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(super) expires: Option<DateTime<Utc>>,
}

impl CreateKeyRequest {
    pub(super) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let name = fields.required("name");
        let scopes = fields.optional::<KeyScopes>("scopes");
        let expires = fields.optional::<Expiry>("expires");
        let name = fields.finish_with(name)?;
        Ok(Self {
            name,
            scopes: scopes.map_or_else(|| DEFAULT_SCOPES.to_vec(), |KeyScopes(scopes)| scopes),
            expires: expires.map(|Expiry(expires)| expires),
        })
    }
}

values::texts! {
    pub(super) struct KeyName = |text| {
        let name = visible_text(text.trim(), 1, MAX_NAME)?;
        if name.contains(char::is_control) {
            let message = "Must be one line without control characters.";
            return Err(Invalid::new("control-character", message));
        }
        Ok(name)
    };
}

http_kit::text_fields! {
    KeyName = ObjectBuilder::new()
        .description(Some("What you call it: one line, with at least one character that can be seen."))
        .format(Some(SchemaFormat::Custom("visible-line".to_owned())))
        .min_length(Some(1)).max_length(Some(MAX_NAME)).examples(["Invoices in n8n"]);
    Expiry;
}

/// The scopes of a key, each once.
#[derive(Debug)]
pub(super) struct KeyScopes(Vec<KeyScope>);

impl FieldValue for KeyScopes {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        let names = Vec::<String>::from_json(value)?;
        let mut scopes = Vec::new();
        for name in &names {
            let scope = KeyScope::from_name(name).ok_or_else(|| {
                let message = format!("Must have only {}.", KeyScope::list());
                Invalid::new("unknown-scope", message)
            })?;
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        if scopes.is_empty() {
            return Err(Invalid::new("too-short", "Must have at least one scope."));
        }
        Ok(Self(scopes))
    }
}

http_kit::schemas! {
    KeyScopes = {
        let names = KeyScope::ALL.iter().map(|scope| scope.name());
        let scope = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(names));
        ArrayBuilder::new()
            .description(Some(
                "What it may do, within what its user may do; `tasks:read` and `tasks:write` by default.",
            ))
            .items(scope)
            .min_items(Some(1))
    };
}

/// A time in the future.
#[derive(Debug)]
pub(super) struct Expiry(DateTime<Utc>);

impl FromText for Expiry {
    fn from_text(text: &str) -> Result<Self, Invalid> {
        let time = DateTime::parse_from_rfc3339(text.trim()).map_err(|_| {
            let message = "Must be a time in RFC 3339 format, such as 2027-01-31T09:30:00Z.";
            Invalid::new("invalid-date", message)
        })?;
        let time = time.to_utc();
        if time <= Utc::now() {
            return Err(Invalid::new("in-the-past", "Must be in the future."));
        }
        if time.year() > LAST_YEAR {
            let message = "Must be before the year 10000.";
            return Err(Invalid::new("out-of-range", message));
        }
        Ok(Self(time))
    }
}

/// Whether only keys are listed that are confirmed, or that are not.
pub(super) fn confirmed(query: &Query) -> Result<Option<bool>, Problem> {
    match query.first("confirmed") {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => {
            let invalid = Invalid::new("invalid-value", "Must be true or false.");
            Err(Problem::invalid_field("confirmed", invalid))
        }
    }
}
