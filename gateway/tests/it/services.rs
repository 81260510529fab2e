//! Fake services that record the requests they receive and respond as the query says.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix_web::body::SizedStream;
use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::web::{Bytes, Data, Json, Payload, get, post, to};
use actix_web::{App, HttpRequest, HttpResponse};
use auth::{JwkSet, RevocationFeed};
use futures_util::StreamExt as _;
use local_stack::ports;
use serde_json::{Value, json};
use server::{HttpServerSettings, Running};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use values::{TaskId, UserId};

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
    /// When the revocations were requested.
    pub(crate) polls: Vec<Instant>,
    /// The token of every API key, and for how many seconds; without one, all are refused.
    pub(crate) key_token: Option<(String, u64)>,
    /// The status with which they are refused in place of 401, and `Retry-After`.
    pub(crate) key_refusal: Option<(StatusCode, u64)>,
    /// Exchanges of keys.
    pub(crate) exchanges: usize,
    /// How many of the next requests are refused as if their token was revoked.
    pub(crate) refusals: usize,
    /// Requests whose head arrived.
    pub(crate) started: usize,
    /// Tasks that are pending.
    pub(crate) pending: HashSet<String>,
    /// Tasks that have ended, in this order.
    pub(crate) ended: Vec<String>,
    /// Responses with tasks that have ended.
    pub(crate) feeds: usize,
    /// After how many lines such a response ends, if it does.
    pub(crate) feed_lines: Option<usize>,
    /// Lets one slow response begin, or one stream go on after its first chunk.
    pub(crate) go_on: Arc<Notify>,
}

/// A service on a port that stays free while the service is down.
#[derive(Debug, Clone)]
pub(crate) struct FakeService {
    pub(crate) running: Running,
    state: Arc<Mutex<State>>,
}

impl FakeService {
    pub(crate) fn start() -> Self {
        let [port] = ports::free().unwrap();
        Self::start_at(([127, 0, 0, 1], port).into())
    }

    /// A service on a port that another one used before.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let mut running = Running::new();
        let (listener, address) = server::bind(address).unwrap();
        running.address = Some(address);
        let state = Arc::<Mutex<State>>::default();
        let data = Data::from(Arc::clone(&state));
        let shutdown = Data::new(running.shutdown());
        let settings = HttpServerSettings::single_threaded();
        server::serve(&running, listener, settings, move || {
            App::new()
                .app_data(data.clone())
                .app_data(shutdown.clone())
                .route("/healthz", get().to(HttpResponse::Ok))
                .route("/.well-known/jwks.json", get().to(keys))
                .route("/internal/revocations", get().to(revocations))
                .route("/internal/tasks/ended", get().to(ended_tasks))
                .route("/internal/keys/exchange", post().to(exchange))
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

    /// Makes a task pending, and returns the path that waits for its end.
    pub(crate) fn pending_task(&self) -> String {
        let id = TaskId::generate().to_string();
        let path = format!("/people-task/tasks/{id}?wait=30");
        self.with(|state| state.pending.insert(id));
        path
    }

    /// Ends a pending task.
    pub(crate) fn end(&self, path: &str) {
        let id = path.rsplit('/').next().unwrap().split('?').next().unwrap();
        self.with(|state| {
            assert!(state.pending.remove(id));
            state.ended.push(id.to_owned());
        });
    }

    pub(crate) async fn stop(&self) {
        assert!(self.running.stop(Duration::from_secs(3)).await);
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
    let mut state = state.lock().unwrap();
    state.polls.push(Instant::now());
    let raised = state.raised.clone().into_iter();
    HttpResponse::Ok().json(RevocationFeed {
        epochs: raised.map(|(user, epoch)| (user.into(), epoch)).collect(),
        next: "1".to_owned(),
        incarnation: testkit::INCARNATION.to_owned(),
        ..RevocationFeed::default()
    })
}

/// Tells each listener once which tasks have ended, until the service stops.
async fn ended_tasks(state: Shared, shutdown: Data<CancellationToken>) -> HttpResponse {
    let length = {
        let mut state = state.lock().unwrap();
        state.feeds += 1;
        state.feed_lines.unwrap_or(usize::MAX)
    };
    let lines = futures_util::stream::unfold((state, 0), |(state, told)| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let tasks = state.lock().unwrap().ended[told..].to_vec();
        let line = json!({"cursor": "2026-01-01T00:00:00Z", "tasks": tasks});
        let told = told + tasks.len();
        Some((
            Ok::<_, std::io::Error>(Bytes::from(format!("{line}\n"))),
            (state, told),
        ))
    });
    let stopped = CancellationToken::clone(&shutdown).cancelled_owned();
    HttpResponse::Ok().streaming(lines.take(length).take_until(stopped))
}

/// Takes a moment, in which other requests need the same token.
async fn exchange(state: Shared, body: Json<Value>) -> HttpResponse {
    assert!(body["key"].as_str().unwrap().starts_with("csk_"));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut state = state.lock().unwrap();
    state.exchanges += 1;
    match &state.key_token {
        Some((token, seconds)) => {
            HttpResponse::Ok().json(json!({"token": token, "seconds": seconds}))
        }
        None => match state.key_refusal {
            Some((status, wait)) => HttpResponse::build(status)
                .insert_header(("retry-after", wait.to_string()))
                .finish(),
            None => HttpResponse::Unauthorized().finish(),
        },
    }
}

async fn record(request: HttpRequest, payload: Payload, state: Shared) -> HttpResponse {
    let response = request
        .query_string()
        .split('&')
        .find_map(|parameter| parameter.strip_prefix("response="))
        .unwrap_or_default()
        .to_owned();
    state.lock().unwrap().started += 1;
    let body = drain(payload).await;
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), text(value)));
    let received = ReceivedRequest {
        target: request.uri().to_string(),
        headers: headers.collect(),
        body,
    };
    let task = request.path().rsplit('/').next().unwrap_or_default();
    // A test that has seen the request may end its task.
    let is_pending = {
        let mut state = state.lock().unwrap();
        state.received.push(received);
        state.pending.contains(task)
    };
    if is_pending {
        let pending = json!({"status": "pending"});
        return HttpResponse::Ok()
            .insert_header(("x-may-wait", "30"))
            .json(pending);
    }
    if takes_refusal(&state) {
        let challenge = r#"Bearer realm="countersign", error="invalid_token""#;
        return HttpResponse::Unauthorized()
            .insert_header(("www-authenticate", challenge))
            .json(json!({"code": "token-revoked"}));
    }
    reply(&response, &state).await
}

/// Whether the request is refused as if its token was revoked.
fn takes_refusal(state: &Shared) -> bool {
    let mut state = state.lock().unwrap();
    let is_refused = state.refusals > 0;
    state.refusals = state.refusals.saturating_sub(1);
    is_refused
}

async fn drain(mut payload: Payload) -> Option<usize> {
    let mut length = 0;
    while let Some(chunk) = payload.next().await {
        length += chunk.ok()?.len();
    }
    Some(length)
}

async fn reply(response: &str, state: &Shared) -> HttpResponse {
    let go_on = Arc::clone(&state.lock().unwrap().go_on);
    match response {
        "slow" => {
            go_on.notified().await;
            HttpResponse::Ok().finish()
        }
        "headers" => HttpResponse::Ok()
            .insert_header(("location", "/users/1/delete-status/2"))
            .insert_header(("link", "</users?offset=1>; rel=\"next\""))
            .insert_header(("etag", "\"1\""))
            .insert_header(("accept-encoding", "identity"))
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
        "stall-short" => HttpResponse::Ok().body(SizedStream::new(21, chunks(go_on))),
        "stream" => HttpResponse::Ok().streaming(chunks(go_on)),
        _ => HttpResponse::Ok().json(json!({"ok": true})),
    }
}

/// A body that the gateway reads whole and sends in parts.
pub(crate) fn medium() -> String {
    (0..8_000).map(|n| format!("{n:04} ")).collect()
}

/// Three chunks, of which the second waits until a test lets it go on.
fn chunks(go_on: Arc<Notify>) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
    futures_util::stream::iter(0..3).then(move |part| {
        let go_on = Arc::clone(&go_on);
        async move {
            if part == 1 {
                go_on.notified().await;
            }
            Ok(Bytes::from(format!("part {part}\n")))
        }
    })
}
