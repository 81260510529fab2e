use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web::Data};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use serde_json::json;
use tokio::sync::Mutex;

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
const TOO_SLOW: &str = "the check took longer than 2 s";
/// How long a result is used again: more requests do not cause more checks.
const RESULT_LIFETIME: Duration = Duration::from_secs(1);
/// The same for a process that is not ready, so that it is used as soon as it is.
const UNREADY_LIFETIME: Duration = Duration::from_millis(100);

const PASSED: &str = "ok";
const FAILING: &str = "failing";

#[derive(Clone)]
struct Check {
    is_required: bool,
    run: Run,
}

type Run = Arc<dyn Fn() -> BoxFuture<'static, Checked> + Send + Sync>;

/// The outcome of a check. A check that fails gives a reason if there is more to say than its name does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked(Result<(), Option<&'static str>>);

impl From<bool> for Checked {
    fn from(passed: bool) -> Self {
        Self(passed.then_some(()).ok_or(None))
    }
}

impl From<Result<(), &'static str>> for Checked {
    fn from(checked: Result<(), &'static str>) -> Self {
        Self(checked.map_err(Some))
    }
}

/// The readiness checks of a process. Clones share the last result, which is used for a second, or for a tenth of a
/// second if the process is not ready. A process that is stopping is not ready, whatever its checks say.
#[derive(Clone, Default)]
pub struct Health {
    stopping: Arc<AtomicBool>,
    checks: BTreeMap<&'static str, Check>,
    /// The last result, and until when it is used.
    last: Arc<Mutex<Option<(Instant, Readiness)>>>,
}

/// The response of `/readyz`.
#[derive(Debug, Clone, Default, Serialize)]
struct Readiness {
    #[serde(skip)]
    ready: bool,
    status: &'static str,
    checks: BTreeMap<&'static str, &'static str>,
    /// Why checks fail, as far as they say.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    reasons: BTreeMap<&'static str, &'static str>,
}

impl Health {
    /// Adds a check that must pass for the process to be ready. A check that takes longer than 2 s fails.
    #[must_use]
    pub fn required<F, R>(self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output: Into<Checked>> + Send + 'static,
    {
        let run = move || check().map(Into::into).boxed();
        self.with(name, true, Arc::new(run))
    }

    /// Adds a check that is reported but does not affect readiness.
    #[must_use]
    pub fn optional<F, R>(self, name: &'static str, check: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output: Into<Checked>> + Send + 'static,
    {
        let run = move || check().map(Into::into).boxed();
        self.with(name, false, Arc::new(run))
    }

    fn with(mut self, name: &'static str, is_required: bool, run: Run) -> Self {
        self.checks.insert(name, Check { is_required, run });
        self
    }

    /// Makes the process unready for good, so that load balancers send it no more requests.
    pub fn set_stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The last result, or a new one if it is too old. Requests that arrive during the checks wait for their result.
    async fn readiness(&self) -> Readiness {
        if self.stopping.load(Ordering::Relaxed) {
            return Readiness {
                status: "stopping",
                ..Readiness::default()
            };
        }
        let mut last = self.last.lock().await;
        if let Some((until, readiness)) = &*last
            && Instant::now() < *until
        {
            return readiness.clone();
        }
        let readiness = self.check().await;
        let lifetime = if readiness.ready {
            RESULT_LIFETIME
        } else {
            UNREADY_LIFETIME
        };
        *last = Some((Instant::now() + lifetime, readiness.clone()));
        readiness
    }

    /// Sets the gauges `ready` and `readiness_check_passed`.
    pub async fn record(&self) {
        let readiness = self.readiness().await;
        let value = |passed: bool| if passed { 1.0 } else { 0.0 };
        metrics::gauge!("ready").set(value(readiness.ready));
        for (check, result) in readiness.checks {
            metrics::gauge!("readiness_check_passed", "check" => check)
                .set(value(result == PASSED));
        }
    }

    async fn check(&self) -> Readiness {
        let results = self.checks.values().map(|check| async {
            let result = tokio::time::timeout(CHECK_TIMEOUT, (check.run)()).await;
            result.unwrap_or(Checked(Err(Some(TOO_SLOW))))
        });
        let (mut ready, mut checks, mut reasons) = (true, BTreeMap::new(), BTreeMap::new());
        for ((name, check), result) in self.checks.iter().zip(join_all(results).await) {
            let Checked(Err(reason)) = result else {
                checks.insert(*name, PASSED);
                continue;
            };
            ready &= !check.is_required;
            checks.insert(*name, FAILING);
            reasons.extend(reason.map(|reason| (*name, reason)));
        }
        Readiness {
            ready,
            status: if ready { "ready" } else { "not-ready" },
            checks,
            reasons,
        }
    }
}

/// `GET /healthz`: the liveness probe.
pub async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

/// `GET /readyz`: the readiness probe, with all checks; `503` if a required one fails.
pub async fn readyz(health: Data<Health>) -> HttpResponse {
    let readiness = health.readiness().await;
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    HttpResponse::build(status).json(readiness)
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use serde_json::json;
    use tokio::time::{sleep, timeout};

    use super::Health;

    #[tokio::test]
    async fn a_process_that_is_stopping_is_not_ready() {
        let health = Health::default();
        let clone = health.clone();
        assert!(health.readiness().await.ready);
        clone.set_stopping();
        let readiness = health.readiness().await;
        assert!(!readiness.ready);
        assert_eq!(readiness.status, "stopping");
    }

    #[tokio::test]
    async fn a_check_that_fails_may_say_why() {
        let health = Health::default()
            .required("database", || ready(Err("it is read-only")))
            .required("queue", || ready(false))
            .optional("keys", || ready(true));
        let readiness = serde_json::to_value(health.readiness().await).unwrap();
        let expected = json!({
            "status": "not-ready",
            "checks": {"database": "failing", "queue": "failing", "keys": "ok"},
            "reasons": {"database": "it is read-only"},
        });
        assert_eq!(readiness, expected);
        let healthy = Health::default().required("keys", || ready(true));
        let readiness = serde_json::to_value(healthy.readiness().await).unwrap();
        assert_eq!(
            readiness,
            json!({"status": "ready", "checks": {"keys": "ok"}})
        );
    }

    #[tokio::test]
    async fn requests_of_the_same_second_share_one_check() {
        let checks = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&checks);
        let health = Health::default().required("slow", move || {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(Duration::from_millis(20)).await;
                number > 0
            }
        });
        let clone = health.clone();
        let requests = (0..100).map(|_| clone.readiness());
        let results = join_all(requests).await;
        assert!(results.iter().all(|readiness| !readiness.ready));
        assert_eq!(checks.load(Ordering::Relaxed), 1);
        let ready = async {
            while !health.readiness().await.ready {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), ready).await.unwrap();
        assert_eq!(checks.load(Ordering::Relaxed), 2);
    }
}
