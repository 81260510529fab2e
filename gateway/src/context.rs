use std::sync::Arc;

use actix_web::http::header::HeaderValue;

use crate::keys::KeyTokens;
use crate::limits::circuit_breaker::CircuitBreaker;
use crate::limits::concurrency::ConcurrencyLimits;
use crate::limits::rate_limit::RateLimits;
use crate::limits::turns::Turns;
use crate::routes::PerService;
use crate::settings::GatewaySettings;
use crate::upstream::BaseAddress;
use crate::waiting::Waiting;

pub(crate) struct AppState {
    pub(crate) settings: GatewaySettings,
    pub(crate) upstreams: PerService<BaseAddress>,
    /// The value of `Strict-Transport-Security`.
    pub(crate) hsts: Option<HeaderValue>,
    pub(crate) rate_limits: RateLimits,
    pub(crate) keys: KeyTokens,
    pub(crate) concurrency: ConcurrencyLimits,
    /// Used by the clients to which `rate_limits` apply.
    pub(crate) turns: Turns,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) circuit_breakers: PerService<CircuitBreaker>,
}
