use std::net::SocketAddr;
use std::time::Duration;

use app_config::{Networks, Reader, Settings};
use auth::RemoteSettings;
use service_runtime::HttpServerSettings;
use url::Url;

use crate::circuit::CircuitSettings;
use crate::cors::Origins;
use crate::rate_limit::RateLimit;
use crate::tls::TlsSettings;

/// The gateway's settings.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Where it listens.
    pub listen_address: SocketAddr,
    /// The user service, and the tokens that it signs.
    pub authority: RemoteSettings,
    /// The people-task service.
    pub people_task_service_url: Url,
    /// Proxies whose `X-Forwarded-*` headers count.
    pub trusted_proxies: Networks,
    /// The certificate, if it speaks TLS itself.
    pub tls: Option<TlsSettings>,
    /// How long browsers shall remember to come by TLS; none are told for a time of zero.
    pub hsts_max_age: Duration,
    /// Pages of which origins may call it from a browser.
    pub cors_allowed_origins: Origins,
    /// How long a service may take to begin its answer, and to go on with it.
    pub upstream_timeout: Duration,
    /// How long a caller may take to send a body.
    pub body_timeout: Duration,
    /// Requests at the services at once; more are answered `503`.
    pub max_in_flight: usize,
    /// Requests whose body is still arriving at once; more are answered `503`.
    pub max_arriving: usize,
    /// Bytes of answers that callers have not taken yet; more are answered `503`.
    pub max_departing_bytes: u64,
    /// When a service that does not answer is left alone.
    pub circuit: CircuitSettings,
    /// Requests that one client address may send.
    pub rate_limit: RateLimitSettings,
    /// How it serves HTTP.
    pub http: HttpServerSettings,
}

impl Settings for GatewaySettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let (upstream_timeout, body_timeout) = time_limits(reader)?;
        let (max_in_flight, max_arriving) = place_limits(reader)?;
        let max_departing_bytes = departing_limit(reader)?;
        Ok(Self {
            listen_address: reader.or_default(
                "LISTEN_ADDRESS",
                "127.0.0.1:8080",
                "Where it listens. Port 0 takes a free one.",
            )?,
            authority: RemoteSettings::read(reader)?,
            people_task_service_url: reader.required(
                "PEOPLE_TASK_SERVICE_URL",
                "where the people-task service listens.",
            )?,
            trusted_proxies: reader.or_default(
                "TRUSTED_PROXIES",
                "",
                "Proxies in front of the gateway whose `X-Forwarded-For`, `-Proto` and `-Host` count.",
            )?,
            tls: tls(reader)?,
            hsts_max_age: hsts_max_age(reader)?,
            cors_allowed_origins: reader.or_default(
                "CORS_ALLOWED_ORIGINS",
                "",
                "Origins whose pages may call the API from a browser; none when not set.",
            )?,
            upstream_timeout,
            body_timeout,
            max_in_flight,
            max_arriving,
            max_departing_bytes,
            circuit: CircuitSettings::read(reader)?,
            rate_limit: RateLimitSettings::read(reader)?,
            http: HttpServerSettings::read(reader)?,
        })
    }
}

fn time_limits(reader: &mut Reader) -> Result<(Duration, Duration), app_config::Error> {
    let upstream = reader.or_default(
        "GATEWAY_UPSTREAM_TIMEOUT",
        "30s",
        "How long a service may take to begin its answer, and between two parts of it.",
    )?;
    let body = reader.or_default(
        "GATEWAY_BODY_TIMEOUT",
        "30s",
        "How long a caller may take to send a body.",
    )?;
    Ok((upstream, body))
}

fn place_limits(reader: &mut Reader) -> Result<(usize, usize), app_config::Error> {
    let allowed = "a whole number from 1 to 1000000";
    let accepts = |limit: &usize| (1..=1_000_000).contains(limit);
    let in_flight = reader.in_range(
        "GATEWAY_MAX_IN_FLIGHT",
        "1024",
        allowed,
        "Requests at the services at once; more are answered `503` right away.",
        accepts,
    )?;
    let arriving = reader.renamed_from("GATEWAY_MAX_ARRIVING").in_range(
        "GATEWAY_MAX_PENDING_UPLOADS",
        "8192",
        allowed,
        "Requests whose body is still arriving at once, beside those of `GATEWAY_MAX_IN_FLIGHT`; more are answered `503` right away.",
        accepts,
    )?;
    Ok((in_flight, arriving))
}

fn departing_limit(reader: &mut Reader) -> Result<u64, app_config::Error> {
    reader.renamed_from("GATEWAY_MAX_DEPARTING_BYTES").in_range(
        "GATEWAY_MAX_BUFFERED_RESPONSE_BYTES",
        "268435456",
        "a whole number from 1048576 to 1099511627776",
        "Bytes of answers that callers have not taken yet, half of which one client address (of IPv6: one /64 network) may have; more are answered `503` right away.",
        |limit| (1_048_576..=1_099_511_627_776).contains(limit),
    )
}

fn hsts_max_age(reader: &mut Reader) -> Result<Duration, app_config::Error> {
    reader.or_default(
        "HSTS_MAX_AGE",
        "365d",
        "How long browsers that came by TLS shall come by TLS only (`Strict-Transport-Security`); `0s` tells them nothing.",
    )
}

/// Both files or none.
fn tls(reader: &mut Reader) -> Result<Option<TlsSettings>, app_config::Error> {
    const CERTIFICATE: &str = "TLS_CERTIFICATE_FILE";
    const KEY: &str = "TLS_PRIVATE_KEY_FILE";
    let certificate_file = reader.optional(
        CERTIFICATE,
        "The file with the certificate and its chain in PEM form, with which the gateway speaks TLS itself.",
    )?;
    let private_key_file = reader.optional(
        KEY,
        "The file with the private key of `TLS_CERTIFICATE_FILE`, in PEM form.",
    )?;
    let reload_interval = reader.in_range(
        "TLS_RELOAD_INTERVAL",
        "60s",
        "a duration from 100ms to 1d",
        "How often the two files are read again, so that a renewed certificate needs no restart.",
        |time| (Duration::from_millis(100)..=Duration::from_secs(86_400)).contains(time),
    )?;
    let missing = |name| app_config::Error::Missing {
        name,
        allowed: "a file in PEM form",
        purpose: "needed because TLS_CERTIFICATE_FILE and TLS_PRIVATE_KEY_FILE go together.",
        secret: false,
    };
    match (certificate_file, private_key_file) {
        (None, None) => Ok(None),
        (Some(certificate_file), Some(private_key_file)) => Ok(Some(TlsSettings {
            certificate_file,
            private_key_file,
            reload_interval,
        })),
        (Some(_), None) => Err(missing(KEY)),
        (None, Some(_)) => Err(missing(CERTIFICATE)),
    }
}

impl Settings for CircuitSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            failures: reader.in_range(
                "GATEWAY_CIRCUIT_FAILURES",
                "5",
                "a whole number from 1 to 1000000",
                "Requests in a row without an answer after which a service is left alone; meanwhile its routes are answered `503` at once.",
                |failures| (1..=1_000_000).contains(failures),
            )?,
            pause: reader.in_range(
                "GATEWAY_CIRCUIT_PAUSE",
                "1s",
                "a duration from 100ms to 5m",
                "How long a service that does not answer is left alone before one request tries it.",
                |pause| (Duration::from_millis(100)..=Duration::from_secs(300)).contains(pause),
            )?,
        })
    }
}

/// How many requests one client address may send.
#[derive(Debug, Clone, Copy)]
pub struct RateLimitSettings {
    /// Whether there are limits at all.
    pub mode: RateLimit,
    /// Requests a second to all routes but those of `credentials_per_minute`; twice as many may come at once.
    pub requests_per_second: u32,
    /// Requests a minute to sign-in, sign-up and the forgot-password calls together.
    pub credentials_per_minute: u32,
    /// How many of those may come at once.
    pub credentials_burst: u32,
}

impl Settings for RateLimitSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let positive = "a whole number from 1 to 1000000";
        let accepts = |number: &u32| (1..=1_000_000).contains(number);
        Ok(Self {
            mode: reader.or_default(
                "RATE_LIMIT",
                "on",
                "Whether requests are limited by client address.",
            )?,
            requests_per_second: reader.in_range(
                "RATE_LIMIT_PER_SECOND",
                "5000",
                positive,
                "Requests a second that one client address may send; twice as many may come at once.",
                accepts,
            )?,
            credentials_per_minute: reader.in_range(
                "RATE_LIMIT_CREDENTIALS_PER_MINUTE",
                "600",
                positive,
                "Sign-ins, sign-ups and forgot-password calls a minute from one client address.",
                accepts,
            )?,
            credentials_burst: reader.in_range(
                "RATE_LIMIT_CREDENTIALS_BURST",
                "150",
                positive,
                "How many sign-ins, sign-ups and forgot-password calls may come at once.",
                accepts,
            )?,
        })
    }
}
