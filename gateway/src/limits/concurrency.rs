//! Limits what requests hold at the same time, and how much of it one client network may have.
//!
//! Each service has permits of its own, so that requests that wait for one service never keep others from
//! the other service.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{MessageBody, SizedStream};
use actix_web::http::StatusCode;
use bytes::Bytes;
use fairness::{Refused, Remainder, Share, Shares};
use futures_util::stream;
use http_kit::{Problem, client_network};
use values::Names as _;

use crate::routes::{PerService, Service};
use crate::settings::GatewaySettings;

/// Bytes of request bodies that the gateway holds.
const REQUEST_BODY_BYTES: u64 = 32 * 1024 * 1024;

/// The length of a part of a response in bytes.
const PART: usize = 16 * 1024;

const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct ConcurrencyLimits {
    /// Requests to a service, until their response starts.
    pub(crate) in_flight: PerService<Arc<Shares<IpAddr>>>,
    /// Requests whose body is still arriving.
    pub(crate) uploads: Arc<Shares<IpAddr>>,
    /// Bytes of request bodies, until the response starts.
    pub(crate) request_bytes: Arc<Shares<IpAddr>>,
    /// Bytes of responses that their clients have not read yet. A service keeps them in memory.
    pub(crate) response_bytes: Arc<Shares<IpAddr>>,
}

impl ConcurrencyLimits {
    pub(crate) fn new(settings: &GatewaySettings) -> Self {
        Self {
            in_flight: PerService::new(|_| Shares::new(Remainder(settings.max_in_flight))),
            uploads: Shares::new(Remainder(settings.max_pending_uploads)),
            request_bytes: Shares::new(Remainder(REQUEST_BODY_BYTES)),
            response_bytes: Shares::new(Remainder(settings.max_buffered_response_bytes)),
        }
    }

    pub(crate) fn record_gauges(&self) {
        for service in Service::ALL {
            let requests = self.in_flight.of(*service).total();
            metrics::gauge!("gateway_requests_in_flight", "service" => service.name())
                .set(u32::try_from(requests).unwrap_or(u32::MAX));
        }
    }
}

/// Takes units for a client, or refuses its request at once: waiting would build an unbounded queue.
pub(crate) fn acquire(
    shares: &Arc<Shares<IpAddr>>,
    client: IpAddr,
    units: u64,
) -> Result<Share<IpAddr>, Problem> {
    try_acquire(shares, client, units).map_err(refusal)
}

/// Takes units for a client's network, which is what has a share, and not its address.
pub(crate) fn try_acquire(
    shares: &Arc<Shares<IpAddr>>,
    client: IpAddr,
    units: u64,
) -> Result<Share<IpAddr>, Refused> {
    shares.try_acquire(client_network(client), units)
}

/// Counts a refusal, and returns the problem of a request that has changed nothing: `429 too-many-concurrent-requests` if its
/// client holds its whole share, `503 overloaded` if all clients together hold too much.
pub(crate) fn refusal(refused: Refused) -> Problem {
    match refused {
        Refused::ShareUsed => {
            metrics::counter!("gateway_requests_over_share_total").increment(1);
            let detail = "Too many requests from your address at once. Wait for responses before you send more.";
            let status = StatusCode::TOO_MANY_REQUESTS;
            Problem::new(status, "too-many-concurrent-requests", detail).retry_after(RETRY_AFTER)
        }
        Refused::Full => {
            metrics::counter!("gateway_requests_shed_total").increment(1);
            Problem::unavailable("overloaded", "Too many requests at once. Try again soon.")
        }
    }
}

/// A body that is sent in parts, because each part is copied for its connection when it is its turn, and many clients
/// may not read. `share` counts it until the last part was taken.
pub(crate) fn in_parts(
    bytes: Bytes,
    share: Option<Share<IpAddr>>,
) -> impl MessageBody<Error = Infallible> {
    let length = bytes.len();
    let parts = (0..length).step_by(PART).map(move |start| {
        let _counted = &share;
        Ok(bytes.slice(start..length.min(start + PART)))
    });
    SizedStream::new(length as u64, stream::iter(parts))
}

#[cfg(test)]
mod tests {
    use fairness::{Remainder, Shares};

    use super::acquire;

    #[test]
    fn addresses_of_one_ipv6_network_have_one_share() {
        let shares = Shares::new(Remainder(10));
        let take = |client: &str| acquire(&shares, client.parse().unwrap(), 2);
        let _first = take("2001:db8::1").unwrap();
        assert!(take("2001:db8::2").is_err());
        assert!(take("2001:db8:0:1::1").is_ok());
    }
}
