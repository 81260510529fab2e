use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web::Data};
use futures_util::future::{join, join_all};
use serde::Serialize;
use serde_json::json;

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

type Check = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// The readiness checks of a process.
#[derive(Clone, Default)]
pub struct Health {
    required: BTreeMap<&'static str, Check>,
    optional: BTreeMap<&'static str, Check>,
}

/// The response of `/readyz`.
#[derive(Debug, Serialize)]
struct Readiness {
    status: &'static str,
    checks: BTreeMap<&'static str, &'static str>,
}

impl Health {
    /// Adds a check that must pass for the process to be ready. A check that takes longer than 2 s fails.
    #[must_use]
    pub fn required<F, R>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        self.required.insert(name, boxed(check));
        self
    }

    /// Adds a check that is reported but does not affect readiness.
    #[must_use]
    pub fn optional<F, R>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        self.optional.insert(name, boxed(check));
        self
    }

    async fn readiness(&self) -> (bool, Readiness) {
        let (required, optional) = join(run(&self.required), run(&self.optional)).await;
        let ready = required.iter().all(|(_, passed)| *passed);
        let named = |(name, passed)| (name, if passed { "ok" } else { "failing" });
        let readiness = Readiness {
            status: if ready { "ready" } else { "not-ready" },
            checks: required.into_iter().chain(optional).map(named).collect(),
        };
        (ready, readiness)
    }
}

fn boxed<F, R>(check: F) -> Check
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = bool> + Send + 'static,
{
    Arc::new(move || Box::pin(check()))
}

async fn run(checks: &BTreeMap<&'static str, Check>) -> Vec<(&'static str, bool)> {
    let checks = checks.iter().map(|(name, check)| async move {
        let passed = tokio::time::timeout(CHECK_TIMEOUT, check()).await;
        (*name, passed.unwrap_or(false))
    });
    join_all(checks).await
}

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.required.keys().chain(self.optional.keys());
        f.debug_set().entries(names).finish()
    }
}

/// `GET /healthz`: the liveness probe.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// `GET /readyz`: the readiness probe. It is `503` if a required check fails, and lists all checks.
pub async fn readyz(health: Data<Health>) -> HttpResponse {
    let (ready, readiness) = health.readiness().await;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    HttpResponse::build(status).json(readiness)
}
