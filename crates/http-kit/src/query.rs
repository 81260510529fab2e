use values::{FromText, Invalid};

use crate::Problem;

/// The decoded pairs of a query string, in order. A name may occur more than once.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query string without its question mark.
    pub fn parse(text: &str) -> Self {
        let pairs = url::form_urlencoded::parse(text.as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The first value of a name that is not empty.
    pub fn first(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(n, value)| n == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// Every value of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.0.iter();
        pairs
            .filter(move |(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// The first value of a name, parsed.
    ///
    /// # Errors
    /// `400 validation-failed`.
    pub fn parsed<T: FromText>(&self, name: &str) -> Result<Option<T>, Problem> {
        let parse = |text| T::from_text(text).map_err(|error| Problem::invalid_field(name, error));
        self.first(name).map(parse).transpose()
    }

    /// A whole number within bounds, or the default if the name is absent.
    ///
    /// # Errors
    /// `400 validation-failed`, with the bounds in the message.
    pub fn number(
        &self,
        name: &str,
        bounds: std::ops::RangeInclusive<i64>,
        default: i64,
    ) -> Result<i64, Problem> {
        let Some(text) = self.first(name) else {
            return Ok(default);
        };
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        number.ok_or_else(|| {
            let (low, high) = (bounds.start(), bounds.end());
            let message = if *high == i64::MAX {
                format!("Must be a whole number of {low} or more.")
            } else {
                format!("Must be a whole number from {low} to {high}.")
            };
            Problem::invalid_field(name, Invalid::new("out-of-range", message))
        })
    }
}

crate::extractors! {
    Query = |request| Ok(Self::parse(request.query_string()));
}

/// Parses an identifier in the path. A malformed identifier counts as unknown.
///
/// # Errors
/// `404 not-found`.
pub fn path_id<T: FromText>(text: &str, what: &'static str) -> Result<T, Problem> {
    T::from_text(text).map_err(|_| Problem::not_found(what))
}

/// Combines what was parsed from two parts of a request.
///
/// # Errors
/// `400 validation-failed` with the errors of both parts. A problem without field errors, such as a missing token,
/// comes first.
pub fn combine_errors<A, B>(
    first: Result<A, Problem>,
    second: Result<B, Problem>,
) -> Result<(A, B), Problem> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) if !first.errors.is_empty() && !second.errors.is_empty() => {
            let errors = first.errors.into_iter().chain(second.errors);
            Err(Problem::validation(errors.collect()))
        }
        (Err(problem), Err(_)) if problem.errors.is_empty() => Err(problem),
        (Err(problem), Ok(_)) | (_, Err(problem)) => Err(problem),
    }
}

#[cfg(test)]
mod tests {
    use values::Invalid;

    use super::combine_errors;
    use crate::Problem;

    #[test]
    fn a_problem_that_is_not_about_fields_is_kept() {
        let invalid = || Problem::invalid_field("include", Invalid::new("unknown-field", "x"));
        let refused = combine_errors::<(), ()>(Err(invalid()), Err(Problem::not_found("task")));
        assert_eq!(refused.unwrap_err().code(), "not-found");
        let refused = combine_errors::<(), ()>(Err(invalid()), Err(invalid()));
        assert_eq!(refused.unwrap_err().body().errors.len(), 2);
    }
}
