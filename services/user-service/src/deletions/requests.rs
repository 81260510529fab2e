//! The parameters of the list of all deletions.

use http_kit::{Problem, Query, combine_errors};
use listing::{Conditions, Filter, Paging};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use values::{FromText as _, Invalid};

use super::store::DeletionStatus;

values::names! {
    /// The fields that deletions can be filtered by.
    pub(super) enum DeletionFilter {
        Status = "status",
    }
}

impl Filter for DeletionFilter {
    fn pattern(self) -> &'static str {
        "(in-progress|completed|failed|cancelled)"
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        DeletionStatus::from_text(value).map(drop)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DeletionQuery {
    pub(super) status: Option<DeletionStatus>,
    pub(super) paging: Paging,
}

impl DeletionQuery {
    pub(super) fn parse(query: &Query) -> Result<Self, Problem> {
        let conditions = Conditions::<DeletionFilter>::parse(query);
        let status = conditions.and_then(|conditions| choose(&conditions));
        let (paging, status) = combine_errors(Paging::parse(query), status)?;
        Ok(Self { status, paging })
    }
}

fn choose(conditions: &Conditions<DeletionFilter>) -> Result<Option<DeletionStatus>, Problem> {
    if conditions.pattern.is_some() {
        let message = "Deletions cannot be searched by a pattern. Use `filter`.";
        let invalid = Invalid::new("unknown-parameter", message);
        return Err(Problem::invalid_field("pattern", invalid));
    }
    match conditions.filters.as_slice() {
        [] => Ok(None),
        // The filter has checked it.
        [(_, status)] => Ok(DeletionStatus::from_text(status).ok()),
        _ => {
            let invalid = Invalid::new("repeated", "A field can be filtered by one value.");
            Err(Problem::invalid_field("filter", invalid))
        }
    }
}

impl IntoParams for DeletionQuery {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut parameters = Conditions::<DeletionFilter>::into_params(&parameter_in);
        parameters.retain(|parameter| parameter.name != "pattern");
        parameters.extend(Paging::into_params(parameter_in));
        parameters
    }
}
