//! `GET /openapi.json`: the services' OpenAPI documents merged into one.
//!
//! Services are asked at most every 30 seconds, or each second until both have responded once. While one is unavailable, its
//! last document is used.

mod merge;

use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use bytes::Bytes;
use futures_util::future::join;
use http_kit::Problem;
use tokio::sync::Mutex;
use utoipa::openapi::OpenApi;
use values::Names as _;

use self::merge::merge;
use crate::limits::concurrency::in_parts;
use crate::routes::{PerService, Service};
use crate::upstream::{BaseAddress, UpstreamClient, get};

const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
/// The pause after an attempt that left a service without a document.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest document of a service in bytes.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

pub(crate) struct Documents {
    client: UpstreamClient,
    upstreams: PerService<BaseAddress>,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    user: Option<OpenApi>,
    people_task: Option<OpenApi>,
    merged: Option<Bytes>,
    /// When the services are asked again.
    next: Option<Instant>,
}

impl Documents {
    pub(crate) fn new(client: UpstreamClient, upstreams: PerService<BaseAddress>) -> Self {
        Self {
            client,
            upstreams,
            cache: Mutex::default(),
        }
    }

    /// The merged document; `None` until each service has been reached once.
    async fn merged(&self) -> Option<Bytes> {
        let mut cache = self.cache.lock().await;
        if cache.next.is_some_and(|next| Instant::now() < next) {
            return cache.merged.clone();
        }
        // If this caller leaves, the next one does not wait for the same service.
        cache.next = Some(Instant::now() + REQUEST_TIMEOUT);
        let fetch = |service| self.fetch(service);
        let (user, people_task) = join(fetch(Service::User), fetch(Service::PeopleTask)).await;
        cache.user = user.or_else(|| cache.user.take());
        cache.people_task = people_task.or_else(|| cache.people_task.take());
        let mut pause = RETRY_PAUSE;
        if let (Some(user), Some(people_task)) = (&cache.user, &cache.people_task) {
            let merged = merge([user.clone(), people_task.clone()]);
            cache.merged = serde_json::to_vec(&merged).ok().map(Bytes::from);
            pause = REFRESH_INTERVAL;
        }
        cache.next = Some(Instant::now() + pause);
        cache.merged.clone()
    }

    async fn fetch(&self, service: Service) -> Option<OpenApi> {
        let fetched = async {
            let uri = self.upstreams.of(service).uri("/openapi.json", None)?;
            let body = get(&self.client, uri, REQUEST_TIMEOUT, MAX_LENGTH).await?;
            anyhow::Ok(serde_json::from_slice(&body)?)
        };
        let service = service.name();
        let explain = |error: &anyhow::Error| {
            tracing::warn!(
                service,
                ?error,
                "a service's OpenAPI document cannot be read"
            );
        };
        fetched.await.inspect_err(explain).ok()
    }
}

/// `GET /openapi.json`: `503` until each service has been reached once.
pub(crate) async fn openapi_json(documents: Data<Documents>) -> Result<HttpResponse, Problem> {
    let merged = documents.merged().await.ok_or_else(|| {
        let detail = "The services have not been reached yet. Try again soon.";
        Problem::unavailable("not-ready", detail)
    })?;
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((CACHE_CONTROL, "no-cache"))
        .body(in_parts(merged, None)))
}
