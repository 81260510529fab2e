use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use telemetry::RequestContext;

const REQUEST_ID: &str = "x-request-id";
const TRACEPARENT: &str = "traceparent";
const PERSISTENT: u8 = 2;

/// The identifier of a row that is due, and the request that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The row's identifier.
    pub id: String,
    /// The request that caused the row.
    pub context: RequestContext,
    /// Whether the message was delivered before and not settled: that consumer has probably died.
    pub redelivered: bool,
}

impl Message {
    /// A message for a row on behalf of a request.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "identifiers are small and copied"
    )]
    pub fn new(id: impl ToString, context: RequestContext) -> Self {
        Self {
            id: id.to_string(),
            context,
            redelivered: false,
        }
    }

    pub(crate) fn properties(&self) -> BasicProperties {
        let mut headers = FieldTable::default();
        let text = |value: &str| AMQPValue::LongString(value.into());
        headers.insert(REQUEST_ID.into(), text(&self.context.request_id));
        headers.insert(TRACEPARENT.into(), text(&self.context.trace.to_string()));
        BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_content_type("text/plain".into())
            .with_message_id(self.id.as_str().into())
            .with_headers(headers)
    }

    /// Parses a delivery; `None` when its body is not UTF-8.
    pub(crate) fn parse(delivery: &Delivery) -> Option<Self> {
        let id = std::str::from_utf8(&delivery.data).ok()?.to_owned();
        let headers = delivery.properties.headers();
        let header = |name: &str| {
            let value = headers.as_ref()?.inner().get(name)?;
            value.as_long_string().map(ToString::to_string)
        };
        let context = RequestContext::continued(
            header(REQUEST_ID).as_deref(),
            header(TRACEPARENT).as_deref(),
        );
        Some(Self {
            id,
            context,
            redelivered: delivery.redelivered,
        })
    }
}
