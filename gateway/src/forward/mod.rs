mod bearer;
mod exchange;
mod headers;
mod key_exchange;
mod request_body;
mod response;
mod wait;

pub(crate) use self::headers::forwarded_request_headers;
pub(crate) use self::response::forwarded_response_headers;

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::{Data, Payload};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use auth::{Verifier, presented_key};
use bytes::Bytes;
use fairness::Refused;
use http::{Method, Request, Response, Uri};
use http_body_util::Full;
use http_kit::{Problem, waited_for_caller};
use hyper::body::Incoming;
use telemetry::CallOutcome;
use tokio::time::timeout;
use values::{CredentialId, Names as _};

use self::bearer::Bearer;
use self::exchange::{exchange, malformed};
use self::key_exchange::Asking;
use self::request_body::RequestBody;
use crate::client_info::ClientInfo;
use crate::context::AppState;
use crate::limits::concurrency::{acquire, refusal};
use crate::limits::rate_limit::RateLimitStatus;
use crate::limits::turns::Turn;
use crate::routes::{RateClass, Route};
use crate::settings::LimitBy;
use crate::upstream::UpstreamClient;

/// How long a request may wait for others of its network.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Handles a request of a route: checks rate, token, path and size in this order, then asks the service.
pub(crate) async fn forward(
    route: &'static Route,
    request: HttpRequest,
    payload: Payload,
    state: Data<AppState>,
    http_client: Data<UpstreamClient>,
) -> Result<HttpResponse, Problem> {
    let asking = Asking {
        client: Arc::new(ClientInfo::of(&request, &state.settings.trusted_proxies)),
        http_client: UpstreamClient::clone(&http_client),
        state,
    };
    let forwarding = Forwarding {
        route,
        request: &request,
        asking: &asking,
    };
    let status = forwarding.count().await?;
    let forwarded = forwarding.respond(payload).await;
    let mut response = forwarded.unwrap_or_else(|problem| problem.error_response());
    if let Some(status) = status {
        status.write_headers(response.headers_mut());
    }
    Ok(response)
}

/// A request, its route, and on whose behalf it is forwarded.
#[derive(Clone, Copy)]
struct Forwarding<'a> {
    route: &'static Route,
    request: &'a HttpRequest,
    asking: &'a Asking,
}

impl Forwarding<'_> {
    /// Counts the request towards the limit of its client, or of its API key if that is known and keys have limits of their own.
    async fn count(self) -> Result<Option<RateLimitStatus>, Problem> {
        let (state, rate) = (&self.asking.state, self.route.rate);
        let by_key = state.settings.limit_by == LimitBy::Key && rate == RateClass::Normal;
        let key = by_key.then(|| self.known_key()).flatten();
        let address = self.asking.client.address;
        state.rate_limits.count(rate, address, key).await
    }

    /// The API key of the request, if its token is known and valid.
    fn known_key(self) -> Option<CredentialId> {
        let key = presented_key(self.request).ok()??;
        let token = self.asking.state.keys.known(&key)?;
        let verifier = self.request.app_data::<Data<Verifier>>()?;
        let is_valid = verifier.verify(token.expose()).is_ok();
        is_valid.then(|| key.id())
    }

    async fn respond(self, payload: Payload) -> Result<HttpResponse, Problem> {
        let (state, client) = (&**self.asking.state, self.asking.client.address);
        let bearer = self.bearer().await?;
        headers::check_length(self.request.uri())?;
        let began = Instant::now();
        let body = request_body::collect(self.request.headers(), payload, client, state).await?;
        if body.is_some() {
            waited_for_caller(self.request, began.elapsed());
        }
        let response = match self.place_to_wait()? {
            None => self.send_in_turn(&bearer, body).await?,
            Some(place) => {
                drop(body);
                self.send_when_ended(&bearer, place).await?
            }
        };
        response::relay(response, state, client, self.route).await
    }

    /// Sends the request when the requests of its network and its service allow it.
    async fn send_in_turn(
        self,
        bearer: &Bearer,
        body: Option<RequestBody>,
    ) -> Result<Response<Incoming>, Problem> {
        let (state, service) = (&self.asking.state, self.route.service);
        let in_flight = state.concurrency.in_flight.of(service);
        let _in_flight = acquire(in_flight, self.asking.client.address, 1)?;
        state.circuit_breakers.of(service).check()?;
        let _turn = self.turn(body.as_ref()).await?;
        let bytes = body.as_ref().map(|body| body.bytes.clone());
        // From the response on, the request costs its service only the memory that `response_bytes` counts.
        self.send(bearer, bytes.unwrap_or_default()).await
    }

    /// Sends the request, unless the circuit of its service is open.
    async fn send(self, bearer: &Bearer, body: Bytes) -> Result<Response<Incoming>, Problem> {
        let (request, state) = (self.request, &self.asking.state);
        let circuit = state.circuit_breakers.of(self.route.service);
        let circuit = circuit.acquire()?;
        let path = headers::path(self.route, request.match_info());
        let service = state.upstreams.of(self.route.service);
        let uri = service.uri(&path, request.uri().query());
        let uri = uri.map_err(|error| malformed(&error))?;
        let mut response = self.exchange(bearer, &uri, body.clone()).await;
        match self.bearer_after(bearer, &response).await {
            Some(Ok(renewed)) => response = self.exchange(&renewed, &uri, body).await,
            Some(Err(problem)) => {
                circuit.record_response();
                return Err(problem);
            }
            None => {}
        }
        match &response {
            Ok(_) => circuit.record_response(),
            Err(_) => circuit.record_failure(),
        }
        response
    }

    async fn exchange(
        self,
        bearer: &Bearer,
        uri: &Uri,
        body: Bytes,
    ) -> Result<Response<Incoming>, Problem> {
        let Self { route, asking, .. } = self;
        let method = route.method.as_str().as_bytes();
        let method = Method::from_bytes(method).map_err(|error| Problem::internal(&error))?;
        let send = || {
            let given = self.request.headers();
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers::request_headers(route.access, given, &asking.client);
            bearer.apply(request.headers_mut());
            asking.http_client.request(request)
        };
        let outage = &asking.state.circuit_breakers.of(route.service).outage;
        let exchange = exchange(route, send, asking.state.settings.upstream_timeout, outage);
        let outcome =
            |result: &Result<_, _>| CallOutcome::of(result, |r: &Response<_>| r.status().as_u16());
        telemetry::outgoing(route.service.name(), exchange, outcome).await
    }

    /// Waits until the request may be sent, if the requests of its network have to take turns.
    async fn turn(self, body: Option<&RequestBody>) -> Result<Option<Turn>, Problem> {
        let (state, client) = (&self.asking.state, self.asking.client.address);
        let work = self.route.work;
        let Some(work) = work.filter(|_| state.rate_limits.apply_to(client)) else {
            // Others must leave time for this request all the same.
            state.turns.record(client);
            return Ok(None);
        };
        let is_long = body.is_some_and(RequestBody::is_long);
        let work = if is_long { work.with_long_body() } else { work };
        let turn = state.turns.wait(client, self.route.service, work);
        in_time(turn).await.map(Some)
    }
}

/// Waits for a turn, as long as a request may wait: `429` if it did not come by then, or if too many wait for theirs.
async fn in_time<T>(turn: impl Future<Output = Result<T, Refused>>) -> Result<T, Problem> {
    match timeout(MAX_WAIT, turn).await {
        Ok(Ok(turn)) => Ok(turn),
        Ok(Err(_)) | Err(_) => Err(refusal(Refused::ShareUsed)),
    }
}
