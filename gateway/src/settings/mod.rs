mod circuit;
mod cors;
mod pages;
mod rate_limit;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Networks, Reader, Settings};
use auth::RemoteSettings;
use server::HttpServerSettings;
use url::Url;

pub use circuit::CircuitSettings;
pub use cors::AllowedOrigins;
pub use pages::{HexColor, PagesName, PagesSettings};
pub use rate_limit::RateLimitSettings;
pub use tls::TlsSettings;

/// Concurrent connections of each thread. Strangers can make each take 150 KB, so that with two threads all of them
/// take 230 MB. With what may be buffered, that is less than the 512 MB of a small container.
const MAX_CONNECTIONS: usize = 768;

/// The gateway's settings.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// The address to listen on.
    pub listen_address: SocketAddr,
    /// The user service, and the tokens that it signs.
    pub authority: RemoteSettings,
    /// The people-task service.
    pub people_task_service_url: Url,
    /// Proxies whose `X-Forwarded-*` headers are trusted.
    pub trusted_proxies: Networks,
    /// The certificate, if the gateway serves TLS itself.
    pub tls: Option<TlsSettings>,
    /// The `max-age` of HSTS; zero sends none.
    pub hsts_max_age: Duration,
    /// The origins whose pages may call the API from a browser.
    pub cors_allowed_origins: AllowedOrigins,
    /// The web pages.
    pub pages: PagesSettings,
    /// How long a service may take to start its response, and between two parts of it.
    pub upstream_timeout: Duration,
    /// How long a caller may take to send a body.
    pub body_timeout: Duration,
    /// Concurrent requests to each service, shared by client networks; more are refused.
    pub max_in_flight: u64,
    /// Concurrent requests whose body is still arriving, shared by client networks; more are refused.
    pub max_pending_uploads: u64,
    /// Bytes of responses that callers have not read yet, shared by client networks; more are refused.
    pub max_buffered_response_bytes: u64,
    /// When the circuit of a service opens.
    pub circuit: CircuitSettings,
    /// Requests that one client address may send.
    pub rate_limit: RateLimitSettings,
    /// How it serves HTTP.
    pub http: HttpServerSettings,
}

impl Settings for GatewaySettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let (upstream_timeout, body_timeout) = read_timeouts(reader)?;
        let (max_in_flight, max_pending_uploads) = read_request_limits(reader)?;
        let max_buffered_response_bytes = read_response_limit(reader)?;
        Ok(Self {
            listen_address: reader.or_default(
                "LISTEN_ADDRESS",
                "127.0.0.1:8080",
                "The address to listen on. Port 0 picks a free port.",
            )?,
            authority: RemoteSettings::read(reader)?,
            people_task_service_url: reader.required(
                "PEOPLE_TASK_SERVICE_URL",
                "the URL of the people-task service.",
            )?,
            trusted_proxies: reader.or_default(
                "TRUSTED_PROXIES",
                "",
                "Proxies in front of the gateway whose `X-Forwarded-For`, `-Proto` and `-Host` headers are trusted.",
            )?,
            tls: TlsSettings::read(reader)?,
            hsts_max_age: reader.or_default(
                "HSTS_MAX_AGE",
                "365d",
                "How long browsers that have connected over TLS must keep using it (`Strict-Transport-Security`); `0s` disables the header.",
            )?,
            cors_allowed_origins: reader.or_default(
                "CORS_ALLOWED_ORIGINS",
                "",
                "Origins whose pages may call the API from a browser; none by default.",
            )?,
            pages: PagesSettings::read(reader)?,
            upstream_timeout,
            body_timeout,
            max_in_flight,
            max_pending_uploads,
            max_buffered_response_bytes,
            circuit: CircuitSettings::read(reader)?,
            rate_limit: RateLimitSettings::read(reader)?,
            http: read_http(reader)?,
        })
    }
}

fn read_http(reader: &mut Reader) -> Result<HttpServerSettings, app_config::Error> {
    let default = HttpServerSettings {
        max_connections: MAX_CONNECTIONS,
        ..HttpServerSettings::default()
    };
    default.read_or(reader)
}

fn read_timeouts(reader: &mut Reader) -> Result<(Duration, Duration), app_config::Error> {
    let upstream = reader.or_default(
        "GATEWAY_UPSTREAM_TIMEOUT",
        "30s",
        "How long a service may take to start its response, and between two parts of it.",
    )?;
    let body = reader.or_default(
        "GATEWAY_BODY_TIMEOUT",
        "30s",
        "How long a caller may take to send a body.",
    )?;
    Ok((upstream, body))
}

fn read_request_limits(reader: &mut Reader) -> Result<(u64, u64), app_config::Error> {
    let allowed = "a whole number from 1 to 1000000";
    let accepts = |limit: &u64| (1..=1_000_000).contains(limit);
    let in_flight = reader.in_range(
        "GATEWAY_MAX_IN_FLIGHT",
        "1024",
        allowed,
        "Concurrent requests to each service, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.",
        accepts,
    )?;
    let pending_uploads = reader.in_range(
        "GATEWAY_MAX_PENDING_UPLOADS",
        "8192",
        allowed,
        "Concurrent requests whose body is still arriving, in addition to `GATEWAY_MAX_IN_FLIGHT`, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.",
        accepts,
    )?;
    Ok((in_flight, pending_uploads))
}

fn read_response_limit(reader: &mut Reader) -> Result<u64, app_config::Error> {
    reader.in_range(
        "GATEWAY_MAX_BUFFERED_RESPONSE_BYTES",
        "134217728",
        "a whole number from 1048576 to 1099511627776",
        "Bytes of responses that callers have not read yet, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.",
        |limit| (1_048_576..=1_099_511_627_776).contains(limit),
    )
}
