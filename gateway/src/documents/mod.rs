//! `GET /openapi.json`: the services' OpenAPI documents merged into one.
//!
//! Services are asked at most every 30 seconds. While one is unavailable, its last document is used.

mod merge;

use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use bytes::Bytes;
use futures_util::future::join;
use http::Uri;
use http_kit::Problem;
use tokio::sync::Mutex;
use utoipa::openapi::OpenApi;

use self::merge::merge;
use crate::parts::in_parts;
use crate::routes::Service;
use crate::upstream::{UpstreamClient, Upstreams, get};

const REFRESH_INTERVAL: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// The largest document of a service in bytes.
const MAX_LENGTH: usize = 4 * 1024 * 1024;

/// The services' documents, and the merged one.
pub(crate) struct Documents {
    client: UpstreamClient,
    user: Uri,
    people_task: Uri,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    user: Option<OpenApi>,
    people_task: Option<OpenApi>,
    merged: Option<(Bytes, Instant)>,
}

impl Documents {
    pub(crate) fn new(client: UpstreamClient, upstreams: &Upstreams) -> Result<Self, http::Error> {
        let uri = |service| upstreams.uri(service, "/openapi.json", None);
        Ok(Self {
            client,
            user: uri(Service::User)?,
            people_task: uri(Service::PeopleTask)?,
            cache: Mutex::default(),
        })
    }

    /// The merged document; `None` until each service has been reached once.
    async fn merged(&self) -> Option<Bytes> {
        let mut cache = self.cache.lock().await;
        if let Some((merged, time)) = &cache.merged
            && time.elapsed() < REFRESH_INTERVAL
        {
            return Some(merged.clone());
        }
        let user = self.fetch("user-service", &self.user);
        let people_task = self.fetch("people-task-service", &self.people_task);
        let (user, people_task) = join(user, people_task).await;
        cache.user = user.or_else(|| cache.user.take());
        cache.people_task = people_task.or_else(|| cache.people_task.take());
        let documents = [cache.user.clone()?, cache.people_task.clone()?];
        let merged = Bytes::from(serde_json::to_vec(&merge(documents)).ok()?);
        cache.merged = Some((merged.clone(), Instant::now()));
        Some(merged)
    }

    async fn fetch(&self, service: &str, uri: &Uri) -> Option<OpenApi> {
        let response = get(&self.client, uri.clone(), REQUEST_TIMEOUT, MAX_LENGTH).await;
        response
            .and_then(|response| Ok(serde_json::from_slice(response.body())?))
            .inspect_err(|error| {
                tracing::warn!(
                    service,
                    ?error,
                    "a service's OpenAPI document cannot be read"
                );
            })
            .ok()
    }
}

/// `GET /openapi.json`.
///
/// # Errors
/// `503` until each service has been reached once.
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
