//! Fake services that record the requests they receive and respond as the query says.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::body::SizedStream;
use actix_web::http::StatusCode;
use actix_web::web::{Bytes, Data, Payload, get, to};
use actix_web::{App, HttpRequest, HttpResponse};
use auth::{JwkSet, RevocationFeed};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use server::{HttpServerSettings, Running};
use values::UserId;

/// Bytes of a long response, more than the buffers of sockets.
pub(crate) const LONG: usize = 16 * 1024 * 1024;

/// A request that a service received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The body's length, or `None` if it was cut off.
    pub(crate) body: Option<usize>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The responses of a service and the requests that it received.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) received: Vec<ReceivedRequest>,
    pub(crate) keys: Option<JwkSet>,
    /// Requests for the keys.
    pub(crate) keys_requests: usize,
    pub(crate) raised: Vec<(UserId, i64)>,
    pub(crate) document: Value,
    /// Requests whose head arrived.
    pub(crate) started: usize,
}

/// A service on a free port.
#[derive(Debug, Clone)]
pub(crate) struct FakeService {
    pub(crate) running: Running,
    state: Arc<Mutex<State>>,
}

impl FakeService {
    pub(crate) fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into())
    }

    /// A service on a port that another one used before.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let mut running = Running::new();
        let (listener, address) = server::bind(address).unwrap();
        running.address = Some(address);
        let state = Arc::<Mutex<State>>::default();
        let data = Data::from(Arc::clone(&state));
        let settings = HttpServerSettings::single_threaded();
        server::serve(&running, listener, settings, move || {
            App::new()
                .app_data(data.clone())
                .route("/healthz", get().to(HttpResponse::Ok))
                .route("/openapi.json", get().to(document))
                .route("/.well-known/jwks.json", get().to(keys))
                .route("/internal/revocations", get().to(revocations))
                .default_service(to(record))
        })
        .unwrap();
        Self { running, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.running.address.unwrap())
    }

    pub(crate) fn with<T>(&self, read: impl FnOnce(&mut State) -> T) -> T {
        read(&mut self.state.lock().unwrap())
    }

    /// The last request that was received.
    pub(crate) fn last(&self) -> ReceivedRequest {
        self.with(|state| state.received.last().cloned())
            .expect("no request was received")
    }

    pub(crate) fn count(&self) -> usize {
        self.with(|state| state.received.len())
    }

    pub(crate) async fn stop(&self) {
        self.running.stop(Duration::from_secs(3)).await;
    }
}

type Shared = Data<Mutex<State>>;

async fn keys(state: Shared) -> HttpResponse {
    let mut state = state.lock().unwrap();
    state.keys_requests += 1;
    match &state.keys {
        Some(keys) => HttpResponse::Ok().json(keys),
        None => HttpResponse::ServiceUnavailable().finish(),
    }
}

async fn revocations(state: Shared) -> HttpResponse {
    let raised = state.lock().unwrap().raised.clone().into_iter();
    HttpResponse::Ok().json(RevocationFeed {
        epochs: raised.map(|(user, epoch)| (user.into(), epoch)).collect(),
        next: "1".to_owned(),
        incarnation: testkit::INCARNATION.to_owned(),
        ..RevocationFeed::default()
    })
}

async fn document(state: Shared) -> HttpResponse {
    HttpResponse::Ok().json(&state.lock().unwrap().document)
}

async fn record(request: HttpRequest, payload: Payload, state: Shared) -> HttpResponse {
    let response = request
        .query_string()
        .strip_prefix("response=")
        .unwrap_or_default()
        .to_owned();
    state.lock().unwrap().started += 1;
    let body = drain(payload).await;
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| {
        (
            name.as_str().to_owned(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    });
    state.lock().unwrap().received.push(ReceivedRequest {
        target: request.uri().to_string(),
        headers: headers.collect(),
        body,
    });
    reply(&response).await
}

async fn drain(mut payload: Payload) -> Option<usize> {
    let mut length = 0;
    while let Some(chunk) = payload.next().await {
        length += chunk.ok()?.len();
    }
    Some(length)
}

async fn reply(response: &str) -> HttpResponse {
    match response {
        "slow" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            HttpResponse::Ok().finish()
        }
        "headers" => HttpResponse::Ok()
            .insert_header(("location", "/users/1/delete-status/2"))
            .insert_header(("link", "</users?offset=1>; rel=\"next\""))
            .insert_header(("etag", "\"1\""))
            .insert_header(("server", "secret/1.0"))
            .insert_header(("x-upstream", "10.0.0.1"))
            .insert_header(("set-cookie", "a=b"))
            .json(json!({})),
        "redirect" => HttpResponse::Found()
            .insert_header(("location", "/docs"))
            .finish(),
        "panic" => HttpResponse::InternalServerError().body("panicked at src/secret.rs"),
        "problem" => HttpResponse::build(StatusCode::CONFLICT)
            .content_type("application/problem+json")
            .body(r#"{"code":"username-taken"}"#),
        "long" => HttpResponse::Ok().body(vec![b'x'; LONG]),
        "medium" => HttpResponse::Ok().body(medium()),
        "stall-short" => HttpResponse::Ok().body(SizedStream::new(21, chunks(true))),
        "stream" | "stall" => HttpResponse::Ok().streaming(chunks(response == "stall")),
        _ => HttpResponse::Ok().json(json!({"ok": true})),
    }
}

/// A body that the gateway reads whole and sends in parts.
pub(crate) fn medium() -> String {
    (0..8_000).map(|n| format!("{n:04} ")).collect()
}

/// Three chunks; if `stalls`, the second never comes.
fn chunks(stalls: bool) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    futures_util::stream::iter(0..3).then(move |part| async move {
        if stalls && part > 0 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        if part > 0 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(Bytes::from(format!("part {part}\n")))
    })
}
