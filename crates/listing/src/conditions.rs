use http_kit::{FieldError, Problem, Query, combine_errors};
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use values::{FromText, Invalid, Names};

/// The regular expression of a filter's value: any text, in which `\,` is a comma.
pub const ANY_TEXT: &str = r"([^,\u0000]|\\,)*";

const MAX_CONDITIONS: usize = 20;

/// The fields that a list can be filtered by.
pub trait Filter: Names {
    /// Why the list cannot be searched by a pattern, if it cannot.
    const PATTERN_REFUSAL: Option<&'static str> = None;

    /// The regular expression of valid values, for the OpenAPI document.
    fn pattern(self) -> &'static str {
        ANY_TEXT
    }

    /// Checks the value of a filter. By default any text is valid.
    ///
    /// # Errors
    /// Why the value is invalid.
    fn check(self, value: &str) -> Result<(), Invalid> {
        let _ = value;
        Ok(())
    }
}

/// The conditions for rows of a list: all filters match, and the pattern is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions<F> {
    /// Fields and the values that they must have.
    pub filters: Vec<(F, String)>,
    /// A text to search for, literally.
    pub pattern: Option<String>,
}

impl<F: Filter> Conditions<F> {
    /// Parses `filter` and `pattern`.
    ///
    /// # Errors
    /// `400 validation-failed` with one entry for each invalid parameter.
    pub fn parse(query: &Query) -> Result<Self, Problem> {
        let pattern = match F::PATTERN_REFUSAL {
            Some(message) if query.first("pattern").is_some() => {
                let invalid = Invalid::new("unknown-parameter", message);
                Err(Problem::invalid_field("pattern", invalid))
            }
            _ => query.parsed("pattern"),
        };
        let (filters, pattern) = combine_errors(filters(query), pattern)?;
        Ok(Self { filters, pattern })
    }

    /// The value that a field is filtered by. `None` if there is no such filter.
    ///
    /// # Errors
    /// `400 validation-failed` if the field is filtered by several values.
    pub fn only<T: FromText>(&self, field: F) -> Result<Option<T>, Problem> {
        let is_of_field = |(other, _): &&(F, String)| other.name() == field.name();
        let mut filters = self.filters.iter().filter(is_of_field);
        let parsed = match (filters.next(), filters.next()) {
            (None, _) => return Ok(None),
            (Some((_, value)), None) => T::from_text(value).map(Some),
            (Some(_), Some(_)) => {
                let message = "A field can be filtered by one value.";
                Err(Invalid::new("repeated", message))
            }
        };
        parsed.map_err(|invalid| Problem::invalid_field("filter", invalid))
    }
}

fn filters<F: Filter>(query: &Query) -> Result<Vec<(F, String)>, Problem> {
    let parts: Vec<_> = query.all("filter").flat_map(split_at_commas).collect();
    if parts.len() > MAX_CONDITIONS {
        let message = format!("Must have at most {MAX_CONDITIONS} conditions.");
        let invalid = Invalid::new("too-many", message);
        return Err(Problem::invalid_field("filter", invalid));
    }
    let mut filters = Vec::new();
    let mut errors = Vec::new();
    for part in parts {
        match filter(&part) {
            Ok(filter) => filters.push(filter),
            Err(invalid) => errors.push(FieldError::new("filter", invalid)),
        }
    }
    if errors.is_empty() {
        Ok(filters)
    } else {
        Err(Problem::validation(errors))
    }
}

fn filter<F: Filter>(part: &str) -> Result<(F, String), Invalid> {
    let Some((field, value)) = part.split_once(':') else {
        let fields = F::list();
        let message = format!("Must be `<field>:<value>`; the field is one of: {fields}.");
        return Err(Invalid::new("invalid-filter", message));
    };
    let field = parse_name::<F>(field)?;
    let value = String::from_text(value)?;
    field.check(&value)?;
    Ok((field, value))
}

/// Splits at commas that are not preceded by a backslash; `\,` becomes a comma. Empty parts are dropped.
fn split_at_commas(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let part = match character {
            ',' => {
                parts.push(String::new());
                continue;
            }
            '\\' => characters.next_if_eq(&',').unwrap_or('\\'),
            other => other,
        };
        if let Some(last) = parts.last_mut() {
            last.push(part);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Finds the field of a name; `unknown-field`, with a message that lists the allowed names.
pub(crate) fn parse_name<N: Names>(name: &str) -> Result<N, Invalid> {
    N::from_name(name).ok_or_else(|| {
        let message = format!("The field must be one of: {}.", N::list());
        Invalid::new("unknown-field", message)
    })
}

/// An optional query parameter in the OpenAPI document, which is a text of this pattern. An empty one counts as absent.
pub fn text_parameter(name: &str, description: &str, pattern: impl Into<String>) -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema.pattern(Some(pattern))))
        .build()
}

impl<F: Filter> IntoParams for Conditions<F> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let pattern = |filter: &F| format!("{}:{}", filter.name(), filter.pattern());
        let filters: Vec<_> = F::ALL.iter().map(pattern).collect();
        let filter = text_parameter(
            "filter",
            "`<field>:<value>`. Repeat the parameter or separate by commas to combine filters, at most \
             20: all must match. Write a comma inside a value as `\\,`.",
            format!("^(({})?(,|$)){{0,{MAX_CONDITIONS}}}$", filters.join("|")),
        );
        let pattern = text_parameter(
            "pattern",
            "A text to search for, literally and case-insensitively.",
            r"^[^\u0000]*$",
        );
        match F::PATTERN_REFUSAL {
            None => vec![filter, pattern],
            Some(_) => vec![filter],
        }
    }
}

#[cfg(test)]
mod tests {
    use http_kit::Query;
    use proptest::prelude::*;
    use url::form_urlencoded::byte_serialize;
    use values::Invalid;

    use super::{Conditions, Filter};

    values::names! {
        enum Field {
            Title = "title",
            Public = "public",
        }
    }

    impl Filter for Field {
        fn check(self, value: &str) -> Result<(), Invalid> {
            match self {
                Self::Public if !["true", "false"].contains(&value) => {
                    Err(Invalid::new("invalid-type", "Must be true or false."))
                }
                _ => Ok(()),
            }
        }
    }

    fn filters(query: &str) -> Option<Vec<(Field, String)>> {
        let conditions = Conditions::parse(&Query::parse(query)).ok()?;
        Some(conditions.filters)
    }

    #[test]
    fn filters_are_repeated_or_separated_by_commas() {
        let expected = vec![
            (Field::Title, "a:b".to_owned()),
            (Field::Public, "true".to_owned()),
        ];
        assert_eq!(filters("filter=title:a:b,public:true").unwrap(), expected);
        assert_eq!(
            filters("filter=title:a:b&filter=public:true").unwrap(),
            expected
        );
    }

    #[test]
    fn an_unknown_field_a_missing_value_and_an_invalid_value_are_refused() {
        for query in [
            "filter=colour:red",
            "filter=title",
            "filter=public:yes",
            "filter=title:%00",
        ] {
            assert_eq!(filters(query), None, "{query}");
        }
        assert!(Conditions::<Field>::parse(&Query::parse("pattern=%00")).is_err());
    }

    #[test]
    fn a_list_has_at_most_twenty_filters_and_more_are_one_error() {
        let repeated = |times: usize| format!("filter={}", "title:a,".repeat(times));
        assert_eq!(filters(&repeated(20)).unwrap().len(), 20);
        for query in [repeated(21), format!("filter={}", "a,".repeat(6_000))] {
            let problem = Conditions::<Field>::parse(&Query::parse(&query)).unwrap_err();
            let errors = problem.body().errors;
            let messages: Vec<_> = errors.iter().map(|error| error.message.as_str()).collect();
            assert_eq!(messages, ["Must have at most 20 conditions."]);
        }
    }

    proptest! {
        #[test]
        fn any_value_can_be_escaped(value in "[^\0]{1,20}", other in "[a-z]{1,5}") {
            let given = format!("title:{}", value.replace(',', "\\,"));
            let given: String = byte_serialize(given.as_bytes()).collect();
            let found = filters(&format!("filter={given}&filter=title:{other}")).unwrap();
            prop_assert_eq!(found, [(Field::Title, value), (Field::Title, other)]);
        }
    }
}
