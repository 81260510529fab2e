use std::net::SocketAddr;
use std::time::Duration;

use auth::RemoteSettings;
use process::HttpServerSettings;
use settings::{Networks, Reader, Settings};
use url::Url;

use crate::rate_limit::RateLimit;

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
    /// How long a service may take to begin its answer, and to go on with it.
    pub upstream_timeout: Duration,
    /// How long a caller may take to send a body.
    pub body_timeout: Duration,
    /// Requests at the services at once; more are answered `503`.
    pub max_in_flight: usize,
    /// Requests that one client address may send.
    pub rate_limit: RateLimitSettings,
    /// How it serves HTTP.
    pub http: HttpServerSettings,
}

impl Settings for GatewaySettings {
    fn read(reader: &mut Reader) -> Result<Self, settings::Error> {
        Ok(Self {
            listen_address: reader.or(
                "LISTEN_ADDRESS",
                "127.0.0.1:8080",
                "Where it listens. Port 0 takes a free one.",
            )?,
            authority: RemoteSettings::read(reader)?,
            people_task_service_url: reader.required(
                "PEOPLE_TASK_SERVICE_URL",
                "where the people-task service listens.",
            )?,
            trusted_proxies: reader.or(
                "TRUSTED_PROXIES",
                "",
                "Proxies in front of the gateway whose `X-Forwarded-For`, `-Proto` and `-Host` count.",
            )?,
            upstream_timeout: reader.or(
                "GATEWAY_UPSTREAM_TIMEOUT",
                "30s",
                "How long a service may take to begin its answer, and between two parts of it.",
            )?,
            body_timeout: reader.or(
                "GATEWAY_BODY_TIMEOUT",
                "30s",
                "How long a caller may take to send a body.",
            )?,
            max_in_flight: reader.within(
                "GATEWAY_MAX_IN_FLIGHT",
                "1024",
                "a whole number from 1 to 1000000",
                "Requests at the services at once; more are answered `503` right away.",
                |limit| (1..=1_000_000).contains(limit),
            )?,
            rate_limit: RateLimitSettings::read(reader)?,
            http: HttpServerSettings::read(reader)?,
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
    fn read(reader: &mut Reader) -> Result<Self, settings::Error> {
        let positive = "a whole number from 1 to 1000000";
        let accepts = |number: &u32| (1..=1_000_000).contains(number);
        Ok(Self {
            mode: reader.or(
                "RATE_LIMIT",
                "on",
                "Whether requests are limited by client address.",
            )?,
            requests_per_second: reader.within(
                "RATE_LIMIT_PER_SECOND",
                "5000",
                positive,
                "Requests a second that one client address may send; twice as many may come at once.",
                accepts,
            )?,
            credentials_per_minute: reader.within(
                "RATE_LIMIT_CREDENTIALS_PER_MINUTE",
                "600",
                positive,
                "Sign-ins, sign-ups and forgot-password calls a minute from one client address.",
                accepts,
            )?,
            credentials_burst: reader.within(
                "RATE_LIMIT_CREDENTIALS_BURST",
                "150",
                positive,
                "How many sign-ins, sign-ups and forgot-password calls may come at once.",
                accepts,
            )?,
        })
    }
}
