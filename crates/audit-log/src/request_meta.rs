use std::convert::Infallible;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use http_kit::forwarded_for::{TrustedProxies, client_address};
use telemetry::RequestContext;

/// The client address and the request id of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMeta {
    pub(crate) client_address: Option<String>,
    pub(crate) request_id: String,
}

impl RequestMeta {
    /// The metadata of work inside the system, such as a worker's. It has the id of the request that caused the
    /// work, if it runs in the context of that request.
    #[must_use]
    pub fn internal() -> Self {
        Self {
            client_address: None,
            request_id: RequestContext::current_or_fresh().request_id,
        }
    }
}

impl FromRequest for RequestMeta {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let address = client_address(request, TrustedProxies::Peer);
        ready(Ok(Self {
            client_address: address.map(|address| address.to_string()),
            ..Self::internal()
        }))
    }
}
