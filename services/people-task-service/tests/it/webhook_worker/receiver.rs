//! Receivers of webhooks.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actix_web::http::header::HeaderMap;
use actix_web::web::{Bytes, Data};
use actix_web::{App, HttpRequest, HttpResponse};
use server::{HttpServerSettings, Running};
use testkit::eventually;
use tokio::sync::Notify;

/// A call to a receiver.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) at: Instant,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// How a receiver responds.
#[derive(Debug, Clone, Default)]
pub(crate) struct CannedResponse {
    pub(crate) status: u16,
    pub(crate) delay: Duration,
    /// What the response waits for.
    pub(crate) release: Option<Arc<Notify>>,
    pub(crate) header: Option<(&'static str, String)>,
    pub(crate) closes: bool,
    pub(crate) body: Vec<u8>,
}

impl CannedResponse {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::default()
        }
    }

    pub(crate) fn after(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::status(200)
        }
    }
}

type React = dyn Fn(usize, &str) -> CannedResponse + Send + Sync;

/// A server that records webhook calls.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    running: Running,
}

struct State {
    react: Box<React>,
    calls: Mutex<Vec<Call>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Receiver {
    /// A receiver whose response depends on the number of earlier calls.
    pub(crate) fn start(react: impl Fn(usize) -> CannedResponse + Send + Sync + 'static) -> Self {
        Self::start_at([127, 0, 0, 1], react)
    }

    /// The same on another loopback address, which makes it another host.
    pub(crate) fn start_at(
        host: [u8; 4],
        react: impl Fn(usize) -> CannedResponse + Send + Sync + 'static,
    ) -> Self {
        Self::start_by_path(host, move |before, _| react(before))
    }

    /// The same, whose response also depends on the path and query.
    pub(crate) fn start_by_path(
        host: [u8; 4],
        react: impl Fn(usize, &str) -> CannedResponse + Send + Sync + 'static,
    ) -> Self {
        let (listener, address) = server::bind((host, 0).into()).unwrap();
        let state = Arc::new(State {
            react: Box::new(react),
            calls: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        });
        let running = Running::new();
        let settings = HttpServerSettings {
            max_connections: 10_000,
            ..HttpServerSettings::single_threaded()
        };
        let data = Data::from(Arc::clone(&state));
        server::serve(&running, listener, settings, move || {
            let route = actix_web::web::to(receive);
            App::new().app_data(data.clone()).default_service(route)
        })
        .unwrap();
        Self {
            address,
            state,
            running,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state.calls.lock().unwrap().clone()
    }

    /// The highest number of concurrent calls so far.
    pub(crate) fn max_concurrent(&self) -> usize {
        self.state.most.load(Ordering::Relaxed)
    }

    /// Waits for a number of calls.
    pub(crate) async fn wait_for_calls(&self, number: usize) -> Vec<Call> {
        eventually(&format!("{number} calls"), async || {
            Some(self.calls()).filter(|calls| calls.len() >= number)
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.running.shutdown().cancel();
    }
}

async fn receive(state: Data<State>, request: HttpRequest, body: Bytes) -> HttpResponse {
    let open = state.now.fetch_add(1, Ordering::Relaxed) + 1;
    state.most.fetch_max(open, Ordering::Relaxed);
    let call = Call {
        at: Instant::now(),
        method: request.method().to_string(),
        path: request.uri().to_string(),
        headers: request.headers().clone(),
        body,
    };
    let before = {
        let mut calls = state.calls.lock().unwrap();
        calls.push(call);
        calls.len() - 1
    };
    let response = (state.react)(before, &request.uri().to_string());
    if !response.delay.is_zero() {
        tokio::time::sleep(response.delay).await;
    }
    if let Some(release) = response.release {
        release.notified().await;
    }
    state.now.fetch_sub(1, Ordering::Relaxed);
    let mut reply = HttpResponse::build(response.status.try_into().unwrap());
    if let Some(header) = response.header {
        reply.insert_header(header);
    }
    if response.closes {
        reply.force_close();
    }
    reply.body(response.body)
}
