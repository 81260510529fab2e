//! A collector of traces: it receives spans by OTLP over HTTP, and keeps them.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use actix_web::web::{Bytes, Data, PayloadConfig, post};
use actix_web::{App, HttpResponse, HttpServer};
use app_config::{Reader, Settings as _};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1 as otlp;
use prost::Message as _;
use telemetry::TraceSettings;

const MAX_BODY: usize = 16 << 20;

/// An exported span.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    /// Its name.
    pub(crate) name: String,
    /// Its kind: `Server`, `Client`, …
    pub(crate) kind: otlp::span::SpanKind,
    /// The 32 hexadecimal digits of its trace.
    pub(crate) trace: String,
    /// Its 16 hexadecimal digits.
    pub(crate) id: String,
    /// Those of its parent; empty for the first span of a trace.
    pub(crate) parent: String,
    /// Its attributes, as text.
    pub(crate) attributes: HashMap<String, String>,
}

/// A running collector. It runs until the test ends.
pub(crate) struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    /// Starts a collector on a thread of its own.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let data = Data::from(Arc::clone(&spans));
        thread::spawn(move || {
            let app = move || {
                App::new()
                    .app_data(data.clone())
                    .app_data(PayloadConfig::new(MAX_BODY))
                    .route("/v1/traces", post().to(receive))
            };
            let server = HttpServer::new(app).workers(1).disable_signals();
            let server = server.listen(listener).unwrap().run();
            actix_web::rt::System::new().block_on(server).unwrap();
        });
        Self { address, spans }
    }

    /// The settings of a process that exports to this collector.
    pub(crate) fn settings(&self, sampler: &str) -> TraceSettings {
        let endpoint = format!("http://{}", self.address);
        let pairs = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_TRACES_SAMPLER", sampler),
        ];
        TraceSettings::read(&mut Reader::from_pairs(pairs).unwrap()).unwrap()
    }

    /// The spans that were received.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }
}

async fn receive(spans: Data<Mutex<Vec<Span>>>, body: Bytes) -> HttpResponse {
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let received = request
        .resource_spans
        .into_iter()
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .map(Span::from);
    spans.lock().unwrap().extend(received);
    HttpResponse::Ok()
        .content_type("application/x-protobuf")
        .finish()
}

impl From<otlp::Span> for Span {
    fn from(span: otlp::Span) -> Self {
        let attributes = span.attributes.into_iter().map(|attribute| {
            let value = match attribute.value.and_then(|value| value.value) {
                Some(Value::StringValue(text)) => text,
                other => format!("{other:?}"),
            };
            (attribute.key, value)
        });
        Self {
            kind: otlp::span::SpanKind::try_from(span.kind).unwrap(),
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            attributes: attributes.collect(),
            name: span.name,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
