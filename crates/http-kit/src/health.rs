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

/// What must work before a process is ready, and what it can do without for a while.
#[derive(Clone, Default)]
pub struct Health {
    required: BTreeMap<&'static str, Check>,
    optional: BTreeMap<&'static str, Check>,
}

/// The answer of `/readyz`.
#[derive(Debug, Serialize)]
struct Readiness {
    status: &'static str,
    checks: BTreeMap<&'static str, &'static str>,
}

impl Health {
    /// Adds a check without which the process is not ready. It has 2 s; one that takes longer has failed.
    #[must_use]
    pub fn required<F, R>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        let check: Check = Arc::new(move || Box::pin(check()));
        self.required.insert(name, check);
        self
    }

    /// Adds a check that is reported but does not make the process unready.
    #[must_use]
    pub fn optional<F, R>(mut self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = bool> + Send + 'static,
    {
        let check: Check = Arc::new(move || Box::pin(check()));
        self.optional.insert(name, check);
        self
    }

    async fn readiness(&self) -> (bool, Readiness) {
        let (required, wanted) = join(run(&self.required), run(&self.optional)).await;
        let ready = required.iter().all(|(_, passed)| *passed);
        let named = |(name, passed)| (name, if passed { "ok" } else { "failing" });
        let readiness = Readiness {
            status: if ready { "ready" } else { "not-ready" },
            checks: required.into_iter().chain(wanted).map(named).collect(),
        };
        (ready, readiness)
    }
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

/// `GET /healthz`: the process is running.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// `GET /readyz`: everything that the process needs is available; otherwise `503` with what is not.
pub async fn readyz(health: Data<Health>) -> HttpResponse {
    let (ready, readiness) = health.readiness().await;
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    HttpResponse::build(status).json(readiness)
}
