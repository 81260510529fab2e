//! Lanes, and the messages that tell workers about deliveries that are due. One message may name many.

use messaging::Message;
use telemetry::RequestContext;
use url::Url;
use values::{DeliveryId, FromText as _, UserId};

use crate::deliveries::DueDelivery;

/// The lane of deliveries to this URL that use this owner's share of the workers: the origin of the URL, and the
/// [owner](owner_of) of the share, separated by a space. Deliveries of one lane wait for each other; lanes are served in
/// turn.
pub(crate) fn lane_of(url: &str, owner: &str) -> String {
    // Every URL was parsed at registration.
    let port = Url::parse(url).map(|url| url.port_or_known_default());
    let port = port.ok().flatten().unwrap_or_default();
    format!("{}:{port} {owner}", scheme_and_host(url))
}

/// The unit that limits concurrent requests: the host of a webhook's URL, whatever its scheme and port. It is never empty
/// and contains no space.
pub(crate) fn host_of(url: &str) -> String {
    // Every URL was parsed at registration.
    let parsed = Url::parse(url).ok();
    let host = parsed.as_ref().and_then(Url::host_str).unwrap_or(url);
    // Scans start after the empty text, so a host of nothing but dots stays as it is.
    let trimmed = host.trim_end_matches('.');
    if trimmed.is_empty() { host } else { trimmed }.to_owned()
}

/// The scheme and the host of a webhook's URL, for people who may not see the rest.
pub(crate) fn scheme_and_host(url: &str) -> String {
    let is_https = url
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("https:"));
    let scheme = if is_https { "https" } else { "http" };
    format!("{scheme}://{}", host_of(url))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneParts<'a> {
    /// The scheme, host and port of the URL; only the host for webhooks of versions before 0.3.0.
    pub(crate) origin: &'a str,
    pub(crate) host: &'a str,
    pub(crate) owner: &'a str,
}

/// The owner of a share: a user, perhaps of a group of accounts that counts as one.
pub(crate) fn owner_of(user: UserId, group: Option<&str>) -> String {
    group.map_or_else(|| user.to_string(), |group| format!("{group}/{user}"))
}

/// What counts as one with an owner, as [`owner_of`] returns it: the group of its account, or itself.
pub(crate) fn group_of(owner: &str) -> &str {
    owner.split_once('/').map_or(owner, |(group, _)| group)
}

impl<'a> LaneParts<'a> {
    /// The parts of a text as [`lane_of`] returns it.
    pub(crate) fn of(lane: &'a str) -> Self {
        let (origin, owner) = lane.split_once(' ').unwrap_or((lane, ""));
        let host = match origin.split_once("://") {
            Some((_, rest)) => rest.rsplit_once(':').map_or(rest, |(host, _)| host),
            None => origin,
        };
        Self {
            origin,
            host,
            owner,
        }
    }
}

/// A message that names these deliveries, caused by a request; `None` for no deliveries. Each line has a lane, which is
/// two words, and the identifiers of its deliveries, separated by spaces.
pub(crate) fn due_message(due: &[DueDelivery], cause: RequestContext) -> Option<Message> {
    let lines = due.chunk_by(|one, next| one.lane == next.lane).map(|due| {
        let lane = due.first().map(|due| due.lane.as_str());
        let ids: Vec<_> = due.iter().map(|due| due.id.to_string()).collect();
        format!("{} {}", lane.unwrap_or_default(), ids.join(" "))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    (!due.is_empty()).then(|| Message::transient(text, cause))
}

/// The deliveries that a message names; `None` if it is invalid.
pub(crate) fn parse_due_message(text: &str) -> Option<Vec<DueDelivery>> {
    let mut due = Vec::new();
    for line in text.lines() {
        let (owner, _) = line.match_indices(' ').nth(1)?;
        let (lane, ids) = (line.get(..owner)?, line.get(owner + 1..)?);
        for id in ids.split(' ') {
            due.push(DueDelivery {
                id: DeliveryId::from_text(id).ok()?,
                lane: lane.to_owned(),
            });
        }
    }
    (!due.is_empty()).then_some(due)
}

#[cfg(test)]
mod tests {
    use telemetry::RequestContext;
    use values::{DeliveryId, FromText as _, UserId};

    use super::{
        DueDelivery, LaneParts, due_message, group_of, host_of, lane_of, owner_of,
        parse_due_message, scheme_and_host,
    };

    #[test]
    fn scheme_and_host_are_without_credentials_port_path_and_query() {
        for (url, shown) in [
            (
                "HTTPS://u:p@Hooks.example.com:8443/in/secret?key=1#x",
                "https://hooks.example.com",
            ),
            ("http://[::1]:9/x", "http://[::1]"),
        ] {
            assert_eq!(scheme_and_host(url), shown);
        }
    }

    #[test]
    fn the_host_is_without_scheme_port_and_final_dot() {
        for (url, host) in [
            ("http://a.example.com/x?y=1", "a.example.com"),
            ("https://A.example.com:8443/", "a.example.com"),
            ("https://a.example.com./", "a.example.com"),
            ("http://u:p@127.0.0.1:8090/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://./", "."),
            ("http://[0:0::1]:80/", "[::1]"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }

    #[test]
    fn a_lane_has_the_origin_and_the_owner() {
        let id = "5f0c3a7e1b2d4c5e6f708192";
        let user = UserId::from_text(id).unwrap();
        let owner = &owner_of(user, None);
        assert_eq!(owner, id);
        for (url, origin, host) in [
            (
                "http://u:p@a.example.com/x?y=1",
                "http://a.example.com:80",
                "a.example.com",
            ),
            (
                "https://A.example.com.:8443/",
                "https://a.example.com:8443",
                "a.example.com",
            ),
            ("https://[0:0::1]/", "https://[::1]:443", "[::1]"),
        ] {
            let lane = lane_of(url, owner);
            let expected = LaneParts {
                origin,
                host,
                owner,
            };
            assert_eq!(LaneParts::of(&lane), expected);
        }
        let grouped = lane_of("http://a.example/", &owner_of(user, Some("a1")));
        let owner_with_group = LaneParts::of(&grouped).owner;
        assert_eq!(owner_with_group, format!("a1/{id}"));
        assert_eq!((group_of(owner_with_group), group_of(owner)), ("a1", id));
        let earlier = LaneParts::of("[::1] 5f0c3a7e1b2d4c5e6f708192");
        assert_eq!((earlier.origin, earlier.host), ("[::1]", "[::1]"));
    }

    fn due(lane: &str) -> DueDelivery {
        DueDelivery {
            id: DeliveryId::generate(),
            lane: lane.to_owned(),
        }
    }

    #[test]
    fn a_message_names_its_deliveries() {
        let all = [
            due("http://a.example:80 a1"),
            due("http://a.example:80 a1"),
            due("[::1] a1"),
            due("http://a.example:80 b2"),
        ];
        let message = due_message(&all, RequestContext::fresh()).unwrap();
        assert_eq!(message.body.lines().count(), 3);
        assert_eq!(parse_due_message(&message.body).unwrap(), all);
        assert_eq!(due_message(&[], RequestContext::fresh()), None);
    }

    #[test]
    fn anything_else_is_invalid() {
        for text in [
            "",
            "nonsense",
            "http://a.example:80",
            "http://a.example:80 a1",
            "http://a.example:80 a1 ",
            "http://a.example:80 a1 x",
            "\n",
        ] {
            assert_eq!(parse_due_message(text), None, "{text:?}");
        }
    }
}
