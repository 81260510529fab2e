use actix_web::HttpRequest;
use actix_web::http::header::IF_MATCH;
use http_kit::{FieldValue, Problem};
use serde_json::Value;
use utoipa::IntoParams;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use values::Invalid;

/// The versions of a task to which a request applies: those of `If-Match` (RFC 9110 section 13.1.1) and of `version` in the
/// body. Without either, all.
#[derive(Debug, Clone, Default, PartialEq, Eq, IntoParams)]
#[into_params(names("If-Match"), parameter_in = Header)]
pub(crate) struct Precondition(
    /// The versions of the task that the request applies to, as `ETag` has them, or `*`. Another version is
    /// `409 task-changed`.
    #[param(
        value_type = String,
        required = false,
        format = "if-match",
        pattern = r#"^([ \t]*\*[ \t]*|[ \t,]*(W/)?"[0-9]+([-;+:_][\t !#-~]*)?"([ \t]*,[ \t,]*(W/)?"[0-9]+([-;+:_][\t !#-~]*)?")*[ \t,]*)$"#,
        example = "\"1\""
    )]
    Option<Vec<i64>>,
);

/// A task's version in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskVersion(i64);

impl Precondition {
    /// Only this version, if there is one.
    pub(crate) fn and(self, version: Option<TaskVersion>) -> Self {
        let Some(TaskVersion(version)) = version else {
            return self;
        };
        let holds = self.0.is_none_or(|versions| versions.contains(&version));
        Self(Some(if holds { vec![version] } else { Vec::new() }))
    }

    /// Whether the request applies to a task of this version.
    pub(crate) fn holds_for(&self, version: i64) -> bool {
        let versions = self.0.as_ref();
        versions.is_none_or(|versions| versions.contains(&version))
    }

    /// The versions of `If-Match` in a request.
    pub(crate) fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let lines: Vec<_> = request.headers().get_all(IF_MATCH).collect();
        if lines.is_empty() {
            return Ok(Self::default());
        }
        let lines = lines.into_iter().map(|line| line.to_str().ok());
        let lines: Option<Vec<_>> = lines.collect();
        let parsed = lines.and_then(|lines| parse_list(&lines.join(",")));
        parsed.map(Self).ok_or_else(|| {
            let message = "Must be `*`, or versions of the task as `ETag` has them, such as \"3\".";
            Problem::invalid_field("If-Match", Invalid::new("invalid-if-match", message))
        })
    }
}

/// Parses the value of `If-Match`: `Some(None)` for `*`.
fn parse_list(text: &str) -> Option<Option<Vec<i64>>> {
    if text.trim() == "*" {
        return Some(None);
    }
    let (mut rest, mut versions) = (text, Vec::new());
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return (!versions.is_empty()).then_some(Some(versions));
        }
        // A weak tag is compared like a strong one, because proxies that compress make them weak.
        let quoted = rest.strip_prefix("W/").unwrap_or(rest);
        let (tag, after) = quoted.strip_prefix('"')?.split_once('"')?;
        versions.push(version_of(tag)?);
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
}

/// The version in a tag, without what proxies that compress add to it: `7-gzip` and `7;br` are 7. A number that no task
/// can have is none of its versions.
fn version_of(tag: &str) -> Option<i64> {
    let digits = tag.find(|c: char| !c.is_ascii_digit()).unwrap_or(tag.len());
    let (number, suffix) = tag.split_at(digits);
    let is_added = suffix.is_empty() || suffix.starts_with(['-', ';', '+', ':', '_']);
    let is_number = !number.is_empty() && is_added;
    is_number.then(|| number.parse().unwrap_or(i64::MAX))
}

impl FieldValue for TaskVersion {
    fn from_json(value: &Value) -> Result<Self, Invalid> {
        // JSON Schema counts `3.0` as an integer, and knows no largest one; a number that no task can have is none of its
        // versions, like one in `If-Match`.
        let whole = value.as_f64().filter(|number| number.fract() == 0.0);
        let whole = whole.map(|number| format!("{number:.0}").parse().unwrap_or(i64::MAX));
        let wrong = || Invalid::new("invalid-type", "Must be a whole number.");
        value.as_i64().or(whole).map(Self).ok_or_else(wrong)
    }
}

http_kit::schemas! {
    TaskVersion = ObjectBuilder::new().schema_type(Type::Integer);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Precondition, TaskVersion, parse_list};

    #[test]
    fn tags_are_compared_without_what_proxies_add() {
        for (text, versions) in [
            (r#""7""#, vec![7]),
            (r#"W/"7""#, vec![7]),
            (r#""7-gzip""#, vec![7]),
            (r#"W/"7--gzip""#, vec![7]),
            (r#""7;br""#, vec![7]),
            (r#""6", W/"7" ,"8-zstd""#, vec![6, 7, 8]),
            (r#", "7",,"#, vec![7]),
            (r#""99999999999999999999""#, vec![i64::MAX]),
        ] {
            assert_eq!(parse_list(text), Some(Some(versions)), "{text}");
        }
        assert_eq!(parse_list(" * "), Some(None));
    }

    #[test]
    fn what_is_no_list_of_versions_is_refused() {
        for text in [
            "",
            " ",
            ",",
            "7",
            r#""7"#,
            r#"7""#,
            r#""""#,
            r#""seven""#,
            r#""-7""#,
            r#""7x""#,
            r#""7" "8""#,
            r#""7", *"#,
            r#"*, "7""#,
            r#"w/"7""#,
        ] {
            assert_eq!(parse_list(text), None, "{text}");
        }
    }

    #[test]
    fn header_and_body_must_both_hold() {
        let header = |text| Precondition(parse_list(text).unwrap());
        let both = |text, version| header(text).and(Some(TaskVersion(version)));
        assert!(both(r#""3", "4""#, 4).holds_for(4));
        assert!(!both(r#""3", "4""#, 4).holds_for(3));
        assert!(!both(r#""3""#, 4).holds_for(4));
        assert!(
            ![3, 4]
                .iter()
                .any(|version| both(r#""3""#, 4).holds_for(*version))
        );
        assert!(both("*", 4).holds_for(4));
        assert!(header("*").and(None).holds_for(1));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = parse_list(&text);
        }
    }
}
