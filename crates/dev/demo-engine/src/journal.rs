//! What was received, newest last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use actix_web::{HttpRequest, HttpResponse, web};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::{Engine, lock};

const MAX_ITEMS: usize = 10_000;
/// Ten thousand bodies of the largest size would fill the memory of a small machine.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// What sort of call was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A task was decided.
    Webhook,
    /// Somebody forgot a password.
    ForgotPassword,
}

/// One call, as it came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// What sort of call it was.
    pub kind: Kind,
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The decoded query; of a name that is repeated, the last value.
    pub query: BTreeMap<String, String>,
    /// Header names in lower case; repeated ones joined by commas.
    pub headers: BTreeMap<String, String>,
    /// The body: as it is when it is JSON, else as a string.
    pub body: Value,
    /// The body, byte for byte where it is UTF-8; signatures are made over it.
    pub text: String,
}

impl Received {
    pub(crate) fn new(kind: Kind, request: &HttpRequest, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).into_owned();
        Self {
            at: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
            kind,
            method: request.method().to_string(),
            path: request.path().to_owned(),
            query: query_of(request),
            headers: headers_of(request),
            body: serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.clone())),
            text,
        }
    }

    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        let pairs = self.query.iter().chain(&self.headers);
        let pairs: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
        256 + self.path.len() + 2 * self.text.len() + pairs
    }
}

pub(crate) fn query_of(request: &HttpRequest) -> BTreeMap<String, String> {
    web::Query::from_query(request.query_string())
        .map(web::Query::into_inner)
        .unwrap_or_default()
}

fn headers_of(request: &HttpRequest) -> BTreeMap<String, String> {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in request.headers() {
        let value = String::from_utf8_lossy(value.as_bytes());
        headers
            .entry(name.as_str().to_owned())
            .and_modify(|held| {
                held.push_str(", ");
                held.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    headers
}

#[derive(Default)]
struct Items {
    items: VecDeque<Arc<Received>>,
    bytes: usize,
}

/// The received calls, bounded in number and size.
#[derive(Default)]
pub(crate) struct Journal {
    held: Mutex<Items>,
}

impl Journal {
    pub(crate) fn record(&self, item: Received) {
        tracing::info!(kind = ?item.kind, path = item.path, "received");
        let mut held = lock(&self.held);
        held.bytes += item.bytes();
        held.items.push_back(Arc::new(item));
        while held.items.len() > MAX_ITEMS || held.bytes > MAX_BYTES {
            let Some(oldest) = held.items.pop_front() else {
                break;
            };
            held.bytes -= oldest.bytes();
        }
    }

    pub(crate) fn clear(&self) {
        *lock(&self.held) = Items::default();
    }

    pub(crate) fn matching(&self, wanted: &Wanted) -> Vec<Arc<Received>> {
        let held = lock(&self.held);
        let matching = held.items.iter().filter(|item| wanted.matches(item));
        matching.cloned().collect()
    }
}

/// Which of the received calls somebody wants to see.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Wanted {
    kind: Option<Kind>,
    /// Equal to the query parameter `correlationId` of the call.
    correlation_id: Option<String>,
    /// Equal to `email` in the body of the call.
    email: Option<String>,
}

impl Wanted {
    fn matches(&self, item: &Received) -> bool {
        let kind = self.kind.is_none_or(|kind| kind == item.kind);
        let correlation = self.correlation_id.as_ref();
        let email = self.email.as_deref();
        kind && correlation.is_none_or(|wanted| item.query.get("correlationId") == Some(wanted))
            && email
                .is_none_or(|wanted| item.body.get("email").and_then(Value::as_str) == Some(wanted))
    }
}

pub(crate) fn routes(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/received")
            .route(web::get().to(list))
            .route(web::delete().to(clear)),
    );
}

async fn list(engine: web::Data<Engine>, wanted: web::Query<Wanted>) -> HttpResponse {
    let items = engine.journal.matching(&wanted);
    let items: Vec<&Received> = items.iter().map(AsRef::as_ref).collect();
    HttpResponse::Ok().json(json!({ "items": items }))
}

async fn clear(engine: web::Data<Engine>) -> HttpResponse {
    engine.journal.clear();
    HttpResponse::Ok().json(json!({}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let journal = Journal::default();
        for number in 0..=MAX_ITEMS {
            let uri = format!("/webhooks/{number}");
            let request = TestRequest::post().uri(&uri).to_http_request();
            journal.record(Received::new(Kind::Webhook, &request, b"{}"));
        }
        let items = journal.matching(&Wanted::default());
        assert_eq!(items.len(), MAX_ITEMS);
        assert_eq!(items[0].path, "/webhooks/1");
    }

    #[test]
    fn the_oldest_go_when_they_are_too_large() {
        let journal = Journal::default();
        let body = vec![b'x'; 256 * 1024];
        for _ in 0..600 {
            let request = TestRequest::post().uri("/webhooks/x").to_http_request();
            journal.record(Received::new(Kind::Webhook, &request, &body));
        }
        let held = lock(&journal.held);
        assert!(held.bytes <= MAX_BYTES && held.items.len() < 600);
        assert_eq!(
            held.bytes,
            held.items.iter().map(|i| i.bytes()).sum::<usize>()
        );
    }
}
