use chrono::{DateTime, Utc};
use http_kit::{Problem, Query, combine_errors};
use listing::{ANY_TEXT, Filter, ListQuery, Sort};
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use values::{FromText as _, Invalid, UserId};

values::names! {
    /// The fields that the audit log can be sorted by.
    pub(crate) enum AuditSort {
        At = "at",
        Action = "action",
    }

    /// The fields that the audit log can be filtered by.
    pub(crate) enum AuditFilter {
        Action = "action",
        /// The identifier of the user who made the change. It finds the entries of a deleted user, too.
        Actor = "actor",
        /// The identifier of the user or task that was changed. It finds the entries of a deleted user, too.
        Subject = "subject",
        RequestId = "requestId",
        /// The earliest time, inclusive.
        After = "after",
        /// The latest time, exclusive.
        Before = "before",
    }
}

/// The regular expression of a time in RFC 3339 format.
const TIME: &str = r"[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

impl Filter for AuditFilter {
    fn pattern(self) -> &'static str {
        match self {
            Self::Action | Self::RequestId => ANY_TEXT,
            Self::Actor | Self::Subject => "[0-9a-f]{24}",
            Self::After | Self::Before => TIME,
        }
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        match self {
            Self::Actor | Self::Subject => UserId::from_text(value).map(drop),
            Self::After | Self::Before => parse_time(value).map(drop).ok_or_else(|| {
                let message = "Must be a time in RFC 3339 format, such as 2026-01-31T09:30:00Z.";
                Invalid::new("invalid-date", message)
            }),
            Self::Action | Self::RequestId => Ok(()),
        }
    }
}

pub(crate) fn parse_time(text: &str) -> Option<DateTime<Utc>> {
    let parsed = DateTime::parse_from_rfc3339(text.trim()).ok()?;
    Some(parsed.to_utc())
}

/// The parameters of the list. Unlike other lists, it cannot be searched by a pattern.
#[derive(Debug)]
pub struct AuditQuery(pub(crate) ListQuery<AuditSort, AuditFilter>);

impl AuditQuery {
    /// Parses the parameters. The default order is newest first.
    ///
    /// # Errors
    /// `400 validation-failed` with one entry for each invalid parameter.
    pub(crate) fn parse(query: &Query) -> Result<Self, Problem> {
        let list = ListQuery::parse(query, Sort::descending(AuditSort::At));
        let (list, ()) = combine_errors(list, refuse_pattern(query))?;
        Ok(Self(list))
    }
}

fn refuse_pattern(query: &Query) -> Result<(), Problem> {
    if query.first("pattern").is_none() {
        return Ok(());
    }
    let message = "The audit log cannot be searched by a pattern. Use `filter`.";
    let invalid = Invalid::new("unknown-parameter", message);
    Err(Problem::invalid_field("pattern", invalid))
}

impl IntoParams for AuditQuery {
    fn into_params(parameter_in: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let mut parameters = ListQuery::<AuditSort, AuditFilter>::into_params(parameter_in);
        parameters.retain(|parameter| parameter.name != "pattern");
        parameters
    }
}

#[cfg(test)]
mod tests {
    use http_kit::Query;
    use listing::{Direction, Sort};

    use super::{AuditFilter, AuditQuery, AuditSort};

    #[test]
    fn the_default_order_is_newest_first() {
        let parse = |query| AuditQuery::parse(&Query::parse(query)).unwrap().0;
        let list = parse("");
        assert_eq!(list.sort, Sort::descending(AuditSort::At));
        let list = parse("sort=action:1");
        assert_eq!(list.sort.direction, Direction::Ascending);
    }

    #[test]
    fn a_pattern_is_reported_together_with_other_invalid_parameters() {
        let refused = AuditQuery::parse(&Query::parse("limit=0&pattern=task")).unwrap_err();
        let errors = refused.body().errors.into_iter();
        let fields: Vec<_> = errors.map(|error| error.field).collect();
        assert_eq!(fields, ["limit", "pattern"]);
    }

    #[test]
    fn identifiers_and_times_are_validated() {
        let id = "65b8f0a2c3d4e5f601234567";
        let query = format!("filter=actor:{id},after:2026-01-31T09:30:00Z&filter=requestId:a:b");
        let query = AuditQuery::parse(&Query::parse(&query)).unwrap();
        let filters = query.0.conditions.filters;
        let expected = [
            (AuditFilter::Actor, id),
            (AuditFilter::After, "2026-01-31T09:30:00Z"),
            (AuditFilter::RequestId, "a:b"),
        ];
        let expected = expected.map(|(field, value)| (field, value.to_owned()));
        assert_eq!(filters, expected);
        for wrong in [
            "filter=actor:ada",
            "filter=subject:1",
            "filter=after:yesterday",
            "filter=before:2026-02-31T00:00:00Z",
            "filter=proof:token",
            "pattern=task",
            "sort=actor:1",
        ] {
            assert!(AuditQuery::parse(&Query::parse(wrong)).is_err(), "{wrong}");
        }
    }
}
