use std::sync::Arc;
use std::time::Duration;

use settings::Networks;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use web::Problem;

use crate::documents::Documents;
use crate::rate_limit::RateLimits;
use crate::upstream::Upstreams;

/// What every request needs, shared by all worker threads.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) upstreams: Upstreams,
    pub(crate) trusted_proxies: Networks,
    pub(crate) upstream_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) rate_limits: RateLimits,
    pub(crate) documents: Documents,
    pub(crate) in_flight: Arc<Semaphore>,
}

impl Gateway {
    /// A place among the requests in flight; it is held until the answer has ended.
    ///
    /// # Errors
    /// `503 overloaded` at once when there is none: waiting would only move the queue to us.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        Arc::clone(&self.in_flight)
            .try_acquire_owned()
            .map_err(|_| {
                metrics::counter!("gateway_requests_shed_total").increment(1);
                Problem::unavailable("overloaded", "Too many requests at once. Try again soon.")
            })
    }
}
