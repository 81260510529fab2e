use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderValue;
use app_config::Networks;
use http_kit::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::circuit_breaker::CircuitBreakers;
use crate::limits::rate_limit::RateLimits;
use crate::limits::response_budget::ResponseBudget;
use crate::upstream::Upstreams;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct AppState {
    pub(crate) upstreams: Upstreams,
    pub(crate) trusted_proxies: Networks,
    /// The value of `Strict-Transport-Security`.
    pub(crate) hsts: Option<HeaderValue>,
    pub(crate) upstream_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) rate_limits: RateLimits,
    pub(crate) circuit_breakers: CircuitBreakers,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) pending_uploads: Arc<Semaphore>,
    pub(crate) response_budget: Arc<ResponseBudget>,
}

impl AppState {
    /// A permit to send a request to a service, held until its response starts.
    ///
    /// # Errors
    /// `503 overloaded` at once when there is none: waiting would build an unbounded queue.
    pub(crate) fn acquire_in_flight(&self) -> Result<OwnedSemaphorePermit, Problem> {
        try_acquire(&self.in_flight)
    }

    /// A permit to receive a request body. Pending uploads cost a service little more than a socket, so
    /// there can be more of them than requests in flight.
    ///
    /// # Errors
    /// `503 overloaded` at once when there is none.
    pub(crate) fn acquire_upload(&self) -> Result<OwnedSemaphorePermit, Problem> {
        try_acquire(&self.pending_uploads)
    }
}

fn try_acquire(permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    let permit = Arc::clone(permits).try_acquire_owned();
    permit.map_err(|_| overloaded())
}

/// `503 overloaded`, for a request that has changed nothing.
pub(crate) fn overloaded() -> Problem {
    metrics::counter!("gateway_requests_shed_total").increment(1);
    Problem::unavailable("overloaded", "Too many requests at once. Try again soon.")
}
