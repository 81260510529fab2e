use http_kit::{Problem, Query, combine_errors};
use utoipa::IntoParams;

use crate::deliveries::requests::Host;

values::names! {
    pub(crate) enum HostStatus {
        Pending = "pending",
        Fail = "fail",
        Paused = "paused",
    }
}

/// The parameters of the list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HostQuery {
    /// Only hosts with `pending` deliveries, with deliveries that have failed (`fail`), or that are `paused`.
    #[param(value_type = Option<String>, pattern = "^(pending|fail|paused)?$")]
    pub(crate) status: Option<HostStatus>,
    /// Only this host, whether it has deliveries or not.
    #[param(value_type = Option<String>, max_length = 253)]
    pub(crate) host: Option<Host>,
    /// The maximum number of hosts of a page. If there are more, the `Link` header leads to the next page.
    #[param(minimum = 1, maximum = 200, default = 50, required = false)]
    pub(crate) limit: i64,
    /// Only hosts after this one in alphabetical order.
    #[param(value_type = Option<String>, max_length = 253)]
    pub(crate) after: Option<Host>,
}

impl HostQuery {
    pub(crate) fn parse(query: &Query) -> Result<Self, Problem> {
        let limit = query.number("limit", 1..=200, 50);
        let chosen = combine_errors(query.parsed("status"), query.parsed("host"));
        let position = combine_errors(limit, query.parsed("after"));
        let ((status, host), (limit, after)) = combine_errors(chosen, position)?;
        Ok(Self {
            status,
            host,
            limit,
            after,
        })
    }
}

#[cfg(test)]
mod tests {
    use http_kit::Query;

    use super::{HostQuery, HostStatus};

    #[test]
    fn hosts_are_chosen_by_status_and_position() {
        let parse = |query| HostQuery::parse(&Query::parse(query));
        let all = parse("status=&after=").unwrap();
        assert_eq!((all.status, all.limit, all.after), (None, 50, None));
        let some = parse("status=fail&limit=7&after=A.example").unwrap();
        assert_eq!((some.status, some.limit), (Some(HostStatus::Fail), 7));
        assert_eq!(some.after.unwrap().as_str(), "a.example");
        for wrong in ["status=sent", "limit=0", "limit=201"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
