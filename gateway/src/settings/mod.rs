mod cors;
mod pages;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Networks, Reader, Switch};
use auth::RemoteSettings;
use server::HttpServerSettings;
use url::Url;

pub use cors::AllowedOrigins;
pub use pages::{HexColor, PagesName, PagesSettings};
pub use tls::TlsSettings;

/// Concurrent connections of each thread. Strangers can make each take 150 KB, so that with two threads all of them
/// take 230 MB. With what may be buffered, that is less than the 512 MB of a small container.
const MAX_CONNECTIONS: usize = 768;

values::names! {
    /// Whose requests count together towards `RATE_LIMIT_PER_SECOND`.
    pub enum LimitBy {
        /// Those of a client address.
        Address = "address",
        /// Those of an API key; without one, those of a client address.
        Key = "key",
    }
}

app_config::named_settings! {
    LimitBy, "`address` or `key`", "address";
}

app_config::settings! {
    /// The gateway's settings.
    pub struct GatewaySettings {
        /// The address to listen on. Port 0 picks a free port.
        pub listen_address: SocketAddr = or_default("LISTEN_ADDRESS", "127.0.0.1:8080"),
        /// The user service, and the tokens that it signs.
        pub authority: RemoteSettings = part(),
        /// The people-task service.
        pub people_task_service_url: Url =
            required("PEOPLE_TASK_SERVICE_URL", "the URL of the people-task service."),
        /// Proxies in front of the gateway whose `X-Forwarded-For`, `-Proto` and `-Host` headers are trusted.
        pub trusted_proxies: Networks = or_default("TRUSTED_PROXIES", ""),
        /// The certificate, if the gateway serves TLS itself.
        pub tls: Option<TlsSettings> = by(TlsSettings::read),
        /// How long browsers that have connected over TLS must keep using it (`Strict-Transport-Security`); `0s` disables the header.
        pub hsts_max_age: Duration = or_default("HSTS_MAX_AGE", "365d"),
        /// Origins whose pages may call the API from a browser; none by default.
        pub cors_allowed_origins: AllowedOrigins = or_default("CORS_ALLOWED_ORIGINS", ""),
        /// The web pages.
        pub pages: PagesSettings = part(),
        /// How long a service may take to start its response, and between two parts of it.
        pub upstream_timeout: Duration = or_default("GATEWAY_UPSTREAM_TIMEOUT", "30s"),
        /// How long a caller may take to send a body.
        pub body_timeout: Duration = or_default("GATEWAY_BODY_TIMEOUT", "30s"),
        /// Concurrent requests to each service, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.
        pub max_in_flight: u64 = in_range("GATEWAY_MAX_IN_FLIGHT", "1024", COUNT, is_count),
        /// Concurrent requests whose body is still arriving, in addition to `GATEWAY_MAX_IN_FLIGHT`, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.
        pub max_pending_uploads: u64 = in_range("GATEWAY_MAX_PENDING_UPLOADS", "8192", COUNT, is_count),
        /// Bytes of responses that callers have not read yet, of which one client address (of IPv6: one /64 network) may have a quarter; more are refused at once.
        pub max_buffered_response_bytes: u64 = in_range(
            "GATEWAY_MAX_BUFFERED_RESPONSE_BYTES",
            "134217728",
            "a whole number from 1048576 to 1099511627776",
            |limit| (1_048_576..=1_099_511_627_776).contains(limit)
        ),
        /// How many callers may wait for the end of a task, and how long.
        pub waiting: WaitingSettings = part(),
        /// When the circuit of a service opens.
        pub circuit: CircuitSettings = part(),
        /// Requests that one client address may send.
        pub rate_limit: RateLimitSettings = part(),
        /// Whose requests `RATE_LIMIT_PER_SECOND` counts together: those of a client address, or with `key` those of an API key, such as
        /// where many flows of one engine have keys of their own. Requests without a key always count by address.
        pub limit_by: LimitBy = or_default("RATE_LIMIT_BY", "address"),
        /// How it serves HTTP.
        pub http: HttpServerSettings = by(read_http),
    }

    /// When the circuit of a service opens, and for how long.
    #[derive(Copy)]
    pub struct CircuitSettings {
        /// Consecutive requests without a response that open the circuit of a service; while it is open, its routes respond with `503` at once.
        pub failures: u32 = in_range("GATEWAY_CIRCUIT_FAILURES", "5", COUNT, is_count),
        /// How long a circuit stays open before it lets a trial request through.
        pub pause: Duration = in_range(
            "GATEWAY_CIRCUIT_PAUSE",
            "1s",
            "a duration from 100ms to 5m",
            |pause| (Duration::from_millis(100)..=Duration::from_secs(300)).contains(pause)
        ),
    }

    /// How many requests one client address may send.
    pub struct RateLimitSettings {
        /// Whether requests are limited by client address.
        pub mode: Switch = or_default("RATE_LIMIT", "on"),
        /// Requests per second that one client address may send; a burst may have twice as many.
        pub requests_per_second: u32 = in_range("RATE_LIMIT_PER_SECOND", "5000", COUNT, is_count),
        /// Sign-ins, sign-ups, password changes, and calls that send or take codes, per minute from one client address.
        pub credentials_per_minute: u32 = in_range("RATE_LIMIT_CREDENTIALS_PER_MINUTE", "60", COUNT, is_count),
        /// How many of those calls one client address may make at once.
        pub credentials_burst: u32 = in_range("RATE_LIMIT_CREDENTIALS_BURST", "20", COUNT, is_count),
        /// Networks that `RATE_LIMIT_PER_SECOND` does not limit and whose requests do not wait for each other while other clients send
        /// some, such as that of the flow engine.
        pub exempt: Networks = or_default("RATE_LIMIT_EXEMPT", ""),
    }

    /// How many callers may wait for the end of a task, and how long.
    #[derive(Copy)]
    pub struct WaitingSettings {
        /// Callers that wait for the end of a task (`?wait=`). When there are more, a client address with few displaces the
        /// newest caller of the address with the most, which is answered at once.
        pub max: usize = in_range("GATEWAY_MAX_WAITING", "12000", COUNT, |max| (1..=1_000_000).contains(max)),
        /// The longest time for which a caller waits for the end of a task, whatever it asks for: less than the time after
        /// which a proxy in front of the gateway gives up.
        pub longest: Duration = in_range(
            "GATEWAY_LONGEST_WAIT",
            "50s",
            "a duration from 1s to 50s",
            |wait| (Duration::from_secs(1)..=Duration::from_secs(50)).contains(wait)
        ),
    }
}

const COUNT: &str = "a whole number from 1 to 1000000";

fn is_count<T: Copy + Into<u64>>(count: &T) -> bool {
    (1..=1_000_000).contains(&(*count).into())
}

fn read_http(reader: &mut Reader) -> Result<HttpServerSettings, app_config::Error> {
    let default = HttpServerSettings {
        max_connections: MAX_CONNECTIONS,
        ..HttpServerSettings::default()
    };
    default.read_or(reader)
}
