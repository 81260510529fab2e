use crate::{FieldError, Problem};

/// Combines what was parsed from two parts of a request.
///
/// # Errors
/// `400 validation-failed` with the errors of both parts.
pub fn combine_errors<A, B>(
    first: Result<A, Problem>,
    second: Result<B, Problem>,
) -> Result<(A, B), Problem> {
    let mut errors = Vec::new();
    match (
        collect_errors(first, &mut errors),
        collect_errors(second, &mut errors),
    ) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(Problem::validation(errors)),
    }
}

fn collect_errors<T>(result: Result<T, Problem>, errors: &mut Vec<FieldError>) -> Option<T> {
    result
        .map_err(|problem| errors.extend(problem.into_errors()))
        .ok()
}
