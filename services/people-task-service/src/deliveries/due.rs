//! The messages that tell workers about deliveries that are due. One message may name many.

use messaging::Message;
use telemetry::RequestContext;
use values::{DeliveryId, FromText as _};

use crate::deliveries::DueDelivery;

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
    use values::DeliveryId;

    use super::{DueDelivery, due_message, parse_due_message};

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
