use http_kit::{Fields, Problem, Query, combine_errors};
use listing::{ANY_TEXT, Conditions, Filter, Paging};
use outbound::MAX_HOST;
use utoipa::openapi::schema::ObjectBuilder;
use utoipa::{IntoParams, ToSchema};
use values::{FromText as _, Invalid, bounded_text};

use crate::deliveries::host_of;
use crate::status::DeliveryStatus;

values::names! {
    /// The fields that deliveries can be filtered by.
    pub(crate) enum DeliveryFilter {
        Status = "status",
        Host = "host",
    }
}

/// The parameters of the list of all deliveries, but for [`Paging`].
pub(super) type DeliveryConditions = Conditions<DeliveryFilter>;

impl Filter for DeliveryFilter {
    const PATTERN_REFUSAL: Option<&'static str> =
        Some("Deliveries cannot be searched by a pattern. Use `filter`.");

    fn pattern(self) -> &'static str {
        match self {
            Self::Status => "(pending|sent|fail)",
            Self::Host => ANY_TEXT,
        }
    }

    fn check(self, value: &str) -> Result<(), Invalid> {
        match self {
            Self::Status => DeliveryStatus::from_text(value).map(drop),
            Self::Host => Host::from_text(value).map(drop),
        }
    }
}

values::texts! {
    /// The host of a webhook's URL, in any spelling that a URL may have, as [`host_of`] returns it.
    pub(crate) struct Host = |text| {
        let text = bounded_text(text, 1, MAX_HOST)?;
        let host = url::Host::parse(text);
        // No delivery has what is no host.
        let host = host.map(|host| host_of(&format!("http://{host}/")));
        Ok(host.unwrap_or_else(|_| text.to_owned()))
    };

    /// The last host of a page.
    pub(crate) struct HostCursor = |text| bounded_text(text, 1, MAX_HOST).map(str::to_lowercase);
}

http_kit::text_fields! {
    Host = ObjectBuilder::new().min_length(Some(1)).max_length(Some(MAX_HOST));
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeliveryQuery {
    pub(crate) status: Option<DeliveryStatus>,
    /// Only of deliveries that are pending or have failed.
    pub(crate) host: Option<Host>,
    pub(crate) paging: Paging,
}

impl DeliveryQuery {
    pub(crate) fn parse(query: &Query) -> Result<Self, Problem> {
        let conditions = DeliveryConditions::parse(query);
        let chosen = conditions.and_then(|conditions| choose(&conditions));
        let (paging, (status, host)) = combine_errors(Paging::parse(query), chosen)?;
        Ok(Self {
            status,
            host,
            paging,
        })
    }
}

fn choose(
    conditions: &DeliveryConditions,
) -> Result<(Option<DeliveryStatus>, Option<Host>), Problem> {
    let status = conditions.only(DeliveryFilter::Status)?;
    let host = conditions.only(DeliveryFilter::Host)?;
    // No index has the hosts of deliveries that were sent, of which there may be billions.
    if host.is_some() && matches!(status, None | Some(DeliveryStatus::Sent)) {
        let message = "Filter by a host together with status:pending or status:fail.";
        let invalid = Invalid::new("status-required", message);
        return Err(Problem::invalid_field("filter", invalid));
    }
    Ok((status, host))
}

/// A host whose deliveries are changed.
#[derive(Debug, ToSchema)]
#[schema(as = HostOfDeliveries)]
pub(crate) struct HostRequest {
    /// The host of the webhooks' URLs, without scheme and port.
    #[schema(example = "engine.example.com")]
    pub(crate) host: Host,
}

impl HostRequest {
    pub(crate) fn parse(mut fields: Fields) -> Result<Self, Problem> {
        let host = fields.required("host");
        fields.finish_with(host.map(|host| Self { host }))
    }
}

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
    pub(crate) after: Option<HostCursor>,
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
    use values::FromText as _;

    use super::{DeliveryQuery, Host, HostQuery, HostStatus};
    use crate::status::DeliveryStatus;

    fn chosen(query: &str) -> Option<(Option<DeliveryStatus>, Option<Host>)> {
        let parsed = DeliveryQuery::parse(&Query::parse(query)).ok()?;
        Some((parsed.status, parsed.host))
    }

    #[test]
    fn a_list_is_chosen_by_status_and_host() {
        let host = || Some(Host::from_text("a.example").unwrap());
        for (query, expected) in [
            ("", (None, None)),
            ("filter=status:sent", (Some(DeliveryStatus::Sent), None)),
            ("filter=status:fail", (Some(DeliveryStatus::Fail), None)),
            (
                "filter=status:fail,host:A.example.",
                (Some(DeliveryStatus::Fail), host()),
            ),
            (
                "filter=host:a.example&filter=status:pending",
                (Some(DeliveryStatus::Pending), host()),
            ),
        ] {
            assert_eq!(chosen(query), Some(expected), "{query}");
        }
        for wrong in [
            "filter=host:a.example",
            "filter=status:sent,host:a.example",
            "filter=status:lost",
            "filter=status:sent,status:fail",
            "filter=host:,status:fail",
            "pattern=a",
            "limit=0",
        ] {
            assert_eq!(chosen(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_host_is_found_in_each_spelling_of_a_url() {
        for (spelling, host) in [
            ("A.example.", "a.example"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("0x7f.1", "127.0.0.1"),
            ("[0:0::1]", "[::1]"),
        ] {
            assert_eq!(Host::from_text(spelling).unwrap().as_str(), host);
        }
        assert_eq!(Host::from_text("a b").unwrap().as_str(), "a b");
        assert!(Host::from_text("").is_err());
    }

    #[test]
    fn hosts_are_chosen_by_status_and_position() {
        let parse = |query| HostQuery::parse(&Query::parse(query));
        let all = parse("status=&after=").unwrap();
        assert_eq!((all.status, all.limit, all.after), (None, 50, None));
        // A page may end with what is read as another host.
        let after = parse("after=149").unwrap().after.unwrap();
        assert_eq!(after.as_str(), "149");
        let some = parse("status=fail&limit=7&after=A.example").unwrap();
        assert_eq!((some.status, some.limit), (Some(HostStatus::Fail), 7));
        assert_eq!(some.after.unwrap().as_str(), "a.example");
        for wrong in ["status=sent", "limit=0", "limit=201"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
