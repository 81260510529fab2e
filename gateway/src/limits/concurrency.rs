//! Limits what requests hold at the same time, and how much of it one client network may have.
//!
//! Each service has permits of its own, so that requests that wait for one service never keep others from
//! the other service.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use http_kit::{NetworkShares, Problem, Share, ShareError};

use crate::routes::Service;
use crate::settings::GatewaySettings;

/// Bytes of request bodies that the gateway holds.
const REQUEST_BODY_BYTES: u64 = 32 * 1024 * 1024;

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimits {
    /// Requests to a service, until their response starts.
    user: Arc<NetworkShares>,
    people_task: Arc<NetworkShares>,
    /// Requests whose body is still arriving.
    pub(crate) uploads: Arc<NetworkShares>,
    /// Bytes of request bodies, until the response starts.
    pub(crate) request_bytes: Arc<NetworkShares>,
    /// Bytes of responses that their clients have not read yet. A service keeps them in memory.
    pub(crate) response_bytes: Arc<NetworkShares>,
}

impl ConcurrencyLimits {
    pub(crate) fn new(settings: &GatewaySettings) -> Self {
        Self {
            user: NetworkShares::new(settings.max_in_flight),
            people_task: NetworkShares::new(settings.max_in_flight),
            uploads: NetworkShares::new(settings.max_pending_uploads),
            request_bytes: NetworkShares::new(REQUEST_BODY_BYTES),
            response_bytes: NetworkShares::new(settings.max_buffered_response_bytes),
        }
    }

    /// Sets the gauges of requests in flight.
    pub(crate) fn record_gauges(&self) {
        for service in [Service::User, Service::PeopleTask] {
            let requests = u32::try_from(self.in_flight(service).total()).unwrap_or(u32::MAX);
            metrics::gauge!("gateway_requests_in_flight", "service" => service.name())
                .set(requests);
        }
    }

    /// The requests to a service, until their response starts.
    pub(crate) fn in_flight(&self, service: Service) -> &Arc<NetworkShares> {
        match service {
            Service::User => &self.user,
            Service::PeopleTask => &self.people_task,
        }
    }
}

/// Takes units for a client, or refuses its request at once: waiting would build an unbounded queue.
///
/// # Errors
/// `429 too-many-concurrent-requests` or `503 overloaded`; see [`refusal`].
pub(crate) fn acquire(
    shares: &Arc<NetworkShares>,
    client: IpAddr,
    units: u64,
) -> Result<Share, Problem> {
    shares.acquire(client, units).map_err(refusal)
}

/// The problem of a request that has changed nothing: `429 too-many-concurrent-requests` if its client holds
/// its whole share, `503 overloaded` if all clients together hold too much.
pub(crate) fn refusal(error: ShareError) -> Problem {
    match error {
        ShareError::Network => {
            metrics::counter!("gateway_requests_over_share_total").increment(1);
            let detail = "Too many requests from your address at once. Wait for responses before you send more.";
            let status = StatusCode::TOO_MANY_REQUESTS;
            Problem::new(status, "too-many-concurrent-requests", detail).retry_after(RETRY_AFTER)
        }
        ShareError::Capacity => {
            metrics::counter!("gateway_requests_shed_total").increment(1);
            Problem::unavailable("overloaded", "Too many requests at once. Try again soon.")
        }
    }
}
