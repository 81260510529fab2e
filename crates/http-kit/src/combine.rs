use crate::{FieldError, Problem};

/// Combines what was parsed from two parts of a request.
///
/// # Errors
/// `400 validation-failed` with the errors of both parts. A problem without field errors, such as a missing token,
/// comes first.
pub fn combine_errors<A, B>(
    first: Result<A, Problem>,
    second: Result<B, Problem>,
) -> Result<(A, B), Problem> {
    let mut errors = Vec::new();
    match (
        collect_errors(first, &mut errors)?,
        collect_errors(second, &mut errors)?,
    ) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Problem::validation(errors)),
    }
}

fn collect_errors<T>(
    result: Result<T, Problem>,
    errors: &mut Vec<FieldError>,
) -> Result<Option<T>, Problem> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(problem) if problem.has_errors() => {
            errors.extend(problem.into_errors());
            Ok(None)
        }
        Err(problem) => Err(problem),
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
