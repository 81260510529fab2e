//! The received calls, newest last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use actix_web::{HttpRequest, web};
use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const MAX_ITEMS: usize = 10_000;
/// Limits the memory, because [`MAX_ITEMS`] bodies of the largest size would fill a small machine.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The kind of a received call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A task was decided.
    Webhook,
    /// A user forgot the password.
    ForgotPassword,
}

/// A received call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// RFC 3339 in UTC with milliseconds.
    pub at: String,
    /// The kind of the call.
    pub kind: Kind,
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The decoded query. A repeated name has its last value.
    pub query: BTreeMap<String, String>,
    /// The headers, with names in lower case. Repeated headers are joined with commas.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON, or as a string if it is not JSON.
    pub body: Value,
    /// The body as text, exactly as it was signed if it is UTF-8.
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

    /// Returns the approximate size in memory.
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
    let headers = request.headers();
    let joined = headers.keys().map(|name| {
        let values = headers.get_all(name);
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        (name.to_string(), values.join(", "))
    });
    joined.collect()
}

#[derive(Default)]
pub(crate) struct Journal {
    calls: VecDeque<Arc<Received>>,
    bytes: usize,
}

impl Journal {
    pub(crate) fn record(&mut self, item: Received) {
        tracing::info!(kind = ?item.kind, path = item.path, "received");
        self.bytes += item.bytes();
        self.calls.push_back(Arc::new(item));
        while self.calls.len() > MAX_ITEMS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.calls.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes();
        }
    }

    pub(crate) fn matching(&self, filter: &Filter) -> Vec<Arc<Received>> {
        let matching = self.calls.iter().filter(|item| filter.matches(item));
        matching.cloned().collect()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Filter {
    kind: Option<Kind>,
    /// Equal to the query parameter `correlationId` of the call.
    correlation_id: Option<String>,
    /// Equal to `email` in the body of the call.
    email: Option<String>,
}

impl Filter {
    fn matches(&self, item: &Received) -> bool {
        let kind = self.kind.is_none_or(|kind| kind == item.kind);
        let correlation = self.correlation_id.as_ref();
        let email = self.email.as_deref();
        kind && correlation.is_none_or(|wanted| item.query.get("correlationId") == Some(wanted))
            && email
                .is_none_or(|wanted| item.body.get("email").and_then(Value::as_str) == Some(wanted))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_oldest_calls_are_dropped_when_there_are_too_many() {
        let mut journal = Journal::default();
        for number in 0..=MAX_ITEMS {
            let uri = format!("/webhooks/{number}");
            let request = TestRequest::post().uri(&uri).to_http_request();
            journal.record(Received::new(Kind::Webhook, &request, b"{}"));
        }
        let items = journal.matching(&Filter::default());
        assert_eq!(items.len(), MAX_ITEMS);
        assert_eq!(items[0].path, "/webhooks/1");
    }

    #[test]
    fn the_oldest_calls_are_dropped_when_they_are_too_large() {
        let mut journal = Journal::default();
        let body = vec![b'x'; 256 * 1024];
        for _ in 0..600 {
            let request = TestRequest::post().uri("/webhooks/x").to_http_request();
            journal.record(Received::new(Kind::Webhook, &request, &body));
        }
        assert!(journal.bytes <= MAX_BYTES && journal.calls.len() < 600);
        assert_eq!(
            journal.bytes,
            journal.calls.iter().map(|i| i.bytes()).sum::<usize>()
        );
    }
}
