use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderValue;
use app_config::Networks;
use http_kit::Problem;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::circuit::Circuits;
use crate::departures::Departures;
use crate::documents::Documents;
use crate::rate_limit::RateLimits;
use crate::upstream::Upstreams;

/// What every request needs, shared by all worker threads.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) upstreams: Upstreams,
    pub(crate) trusted_proxies: Networks,
    /// The value of `Strict-Transport-Security`.
    pub(crate) transport_policy: Option<HeaderValue>,
    pub(crate) upstream_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) rate_limits: RateLimits,
    pub(crate) circuits: Circuits,
    pub(crate) documents: Documents,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) arriving: Arc<Semaphore>,
    pub(crate) departures: Arc<Departures>,
}

impl Gateway {
    /// A place among the requests in flight; it is held until the answer begins.
    ///
    /// # Errors
    /// `503 overloaded` at once when there is none: waiting would only move the queue to us.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        place(&self.in_flight)
    }

    /// A place among the requests whose body is still arriving. They cost a service little more than a
    /// socket, so there are more of them, and they take no place of those that cost it work.
    ///
    /// # Errors
    /// `503 overloaded` at once when there is none.
    pub(crate) fn receive(&self) -> Result<OwnedSemaphorePermit, Problem> {
        place(&self.arriving)
    }
}

fn place(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Problem> {
    Arc::clone(places)
        .try_acquire_owned()
        .map_err(|_| overloaded())
}

/// `503 overloaded`, for a request that has changed nothing.
pub(crate) fn overloaded() -> Problem {
    metrics::counter!("gateway_requests_shed_total").increment(1);
    Problem::unavailable("overloaded", "Too many requests at once. Try again soon.")
}
