//! The OpenAPI document that callers read: the services' documents merged into one.
//!
//! Services are asked at most every half minute. When one is away, the last document that it gave stays.

mod merge;
mod model;

use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Data;
use bytes::Bytes;
use futures_util::future::join;
use http_kit::Problem;
use reqwest::Client;
use tokio::sync::Mutex;
use url::Url;

use self::model::Document;
use crate::gateway::Gateway;
use crate::table::Service;
use crate::upstream::Upstreams;

const ASK_EVERY: Duration = Duration::from_secs(30);
const ASK_TIMEOUT: Duration = Duration::from_secs(3);

/// The services' documents as they were last seen.
#[derive(Debug)]
pub(crate) struct Documents {
    client: Client,
    user: Url,
    people_task: Url,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    user: Option<Document>,
    people_task: Option<Document>,
    merged: Option<(Bytes, Instant)>,
}

impl Documents {
    pub(crate) fn new(client: Client, upstreams: &Upstreams) -> Self {
        Self {
            client,
            user: upstreams.url(Service::User, "/openapi.json", None),
            people_task: upstreams.url(Service::PeopleTask, "/openapi.json", None),
            known: Mutex::default(),
        }
    }

    /// The merged document; `None` while a service has never been reached.
    async fn merged(&self) -> Option<Bytes> {
        let mut known = self.known.lock().await;
        if let Some((merged, asked)) = &known.merged
            && asked.elapsed() < ASK_EVERY
        {
            return Some(merged.clone());
        }
        let (user, people_task) = join(self.ask(&self.user), self.ask(&self.people_task)).await;
        known.user = user.or_else(|| known.user.take());
        known.people_task = people_task.or_else(|| known.people_task.take());
        let documents = [known.user.clone()?, known.people_task.clone()?];
        let merged = serde_json::to_vec(&merge::merge(documents)).ok()?;
        let merged = Bytes::from(merged);
        known.merged = Some((merged.clone(), Instant::now()));
        Some(merged)
    }

    async fn ask(&self, url: &Url) -> Option<Document> {
        let answer = self
            .client
            .get(url.clone())
            .timeout(ASK_TIMEOUT)
            .send()
            .await;
        let answer = answer.and_then(reqwest::Response::error_for_status);
        let document = match answer {
            Ok(answer) => answer.json().await,
            Err(error) => Err(error),
        };
        document
            .inspect_err(|error| {
                tracing::warn!(?error, "a service's OpenAPI document cannot be read");
            })
            .ok()
    }
}

/// `GET /openapi.json`.
///
/// # Errors
/// `503` until each service has been reached once.
pub(crate) async fn merged(gateway: Data<Gateway>) -> Result<HttpResponse, Problem> {
    let merged = gateway.documents.merged().await.ok_or_else(|| {
        let detail = "The services have not been reached yet. Try again soon.";
        Problem::unavailable("not-ready", detail)
    })?;
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((CACHE_CONTROL, "no-cache"))
        .body(merged))
}
