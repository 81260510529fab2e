use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use telemetry::RequestContext;

const REQUEST_ID: &str = "x-request-id";
const TRACEPARENT: &str = "traceparent";

/// What consumers should look at, and the request that caused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The identifier of a row that is due, or another text that names rows.
    pub body: String,
    /// The request that caused the rows.
    pub context: RequestContext,
    /// Whether the message was delivered before and not settled: that consumer has probably died.
    pub redelivered: bool,
    pub(crate) is_transient: bool,
}

impl Message {
    /// A message for a row on behalf of a request, which the broker writes to its disk.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "identifiers are small and copied"
    )]
    pub fn new(id: impl ToString, context: RequestContext) -> Self {
        Self {
            body: id.to_string(),
            context,
            redelivered: false,
            is_transient: false,
        }
    }

    /// A message that the broker forgets when it restarts. Consumers find the rows without it, too.
    pub fn transient(body: String, context: RequestContext) -> Self {
        Self {
            is_transient: true,
            ..Self::new(body, context)
        }
    }

    pub(crate) fn properties(&self) -> BasicProperties {
        let mut headers = FieldTable::default();
        let text = |value: &str| AMQPValue::LongString(value.into());
        headers.insert(REQUEST_ID.into(), text(&self.context.request_id));
        headers.insert(TRACEPARENT.into(), text(&self.context.trace.to_string()));
        BasicProperties::default()
            .with_delivery_mode(if self.is_transient { 1 } else { 2 })
            .with_content_type("text/plain".into())
            .with_headers(headers)
    }

    /// Parses a delivery; `None` when its body is not UTF-8.
    pub(crate) fn parse(delivery: &Delivery) -> Option<Self> {
        let body = std::str::from_utf8(&delivery.data).ok()?.to_owned();
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
            redelivered: delivery.redelivered,
            ..Self::new(body, context)
        })
    }
}
