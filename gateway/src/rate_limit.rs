//! How many requests one client address may send.
//!
//! The counts live in the process, so each replica counts for itself. The back-off of sign-in, which guards
//! an account, lives in the database and holds over all of them.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use settings::SettingValue;
use web::Problem;

use crate::settings::RateLimitSettings;
use crate::table::Rate;

/// Whether requests are limited by client address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimit {
    /// They are.
    On,
    /// They are not: something in front of the gateway does it.
    Off,
}

impl SettingValue for RateLimit {
    const ALLOWED: &'static str = "`on` or `off`";
    const EXAMPLE: &'static str = "on";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err("it is neither".to_owned()),
        }
    }
}

/// The counts of all client addresses.
#[derive(Debug)]
pub(crate) struct RateLimits(Option<Limits>);

#[derive(Debug)]
struct Limits {
    normal: Limit,
    credentials: Limit,
}

struct Limit {
    limiter: DefaultKeyedRateLimiter<IpAddr>,
    /// The limit in the form of the `RateLimit-Policy` header.
    policy: String,
}

impl RateLimits {
    pub(crate) fn new(settings: &RateLimitSettings) -> Self {
        if settings.mode == RateLimit::Off {
            return Self(None);
        }
        let per_second = settings.requests_per_second;
        let normal = Quota::per_second(positive(per_second));
        let credentials = Quota::per_minute(positive(settings.credentials_per_minute));
        Self(Some(Limits {
            normal: Limit::new("requests", normal, per_second.saturating_mul(2)),
            credentials: Limit::new("credentials", credentials, settings.credentials_burst),
        }))
    }

    /// Counts a request.
    ///
    /// # Errors
    /// `429 rate-limited` with `Retry-After` when it is one too many.
    pub(crate) fn count(&self, rate: Rate, client: IpAddr) -> Result<(), Problem> {
        match &self.0 {
            None => Ok(()),
            Some(limits) => limits.of(rate).count(client),
        }
    }

    /// Forgets addresses that have not been heard of for long enough to have all their requests back.
    pub(crate) fn forget_idle(&self) {
        if let Some(limits) = &self.0 {
            for limit in [&limits.normal, &limits.credentials] {
                limit.limiter.retain_recent();
                limit.limiter.shrink_to_fit();
            }
        }
    }
}

impl Limits {
    fn of(&self, rate: Rate) -> &Limit {
        match rate {
            Rate::Normal => &self.normal,
            Rate::Credentials => &self.credentials,
        }
    }
}

impl Limit {
    fn new(name: &'static str, quota: Quota, burst: u32) -> Self {
        let quota = quota.allow_burst(positive(burst));
        let window = quota.replenish_interval() * quota.burst_size().get();
        Self {
            limiter: RateLimiter::keyed(quota),
            policy: format!("\"{name}\";q={burst};w={}", window.as_secs().max(1)),
        }
    }

    fn count(&self, client: IpAddr) -> Result<(), Problem> {
        let Err(early) = self.limiter.check_key(&network(client)) else {
            return Ok(());
        };
        metrics::counter!("gateway_requests_rate_limited_total").increment(1);
        let wait = early.wait_time_from(DefaultClock::default().now());
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Err(self.exceeded(seconds.max(1)))
    }

    fn exceeded(&self, seconds: u64) -> Problem {
        let name = self.policy.split(';').next().unwrap_or_default();
        let mut problem = Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate-limited",
            format!("Too many requests from your address. Try again in {seconds} s."),
        )
        .retry_after(seconds);
        let state = format!("{name};r=0;t={seconds}");
        for (header, value) in [("ratelimit-policy", &self.policy), ("ratelimit", &state)] {
            if let Ok(value) = HeaderValue::from_str(value) {
                problem = problem.header(HeaderName::from_static(header), value);
            }
        }
        problem
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Limit({})", self.policy)
    }
}

fn positive(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

/// Whoever has an IPv6 address has the other addresses of its /64 network, too.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;

    use super::{RateLimit, RateLimits};
    use crate::settings::RateLimitSettings;
    use crate::table::Rate;

    fn limits(mode: RateLimit) -> RateLimits {
        RateLimits::new(&RateLimitSettings {
            mode,
            requests_per_second: 1000,
            credentials_per_minute: 1,
            credentials_burst: 2,
        })
    }

    #[test]
    fn one_address_is_stopped_and_others_are_not() {
        let limits = limits(RateLimit::On);
        let count = |client: &str| limits.count(Rate::Credentials, client.parse().unwrap());
        assert!(count("198.51.100.7").is_ok());
        assert!(count("198.51.100.7").is_ok());
        let problem = count("198.51.100.7").unwrap_err();
        assert_eq!(
            (problem.status_code().as_u16(), problem.code()),
            (429, "rate-limited")
        );
        let response = problem.error_response();
        let header = |name| response.headers().get(name).unwrap().to_str().unwrap();
        assert!((1..=60).contains(&header("retry-after").parse().unwrap()));
        assert_eq!(header("ratelimit-policy"), "\"credentials\";q=2;w=120");
        assert!(count("198.51.100.8").is_ok());
        assert!(
            limits
                .count(Rate::Normal, "198.51.100.7".parse().unwrap())
                .is_ok()
        );
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let limits = limits(RateLimit::On);
        let count = |client: &str| limits.count(Rate::Credentials, client.parse().unwrap());
        assert!(count("2001:db8::1").is_ok());
        assert!(count("2001:db8::2").is_ok());
        assert!(count("2001:db8::3").is_err());
        assert!(count("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn off_counts_nothing() {
        let limits = limits(RateLimit::Off);
        for _ in 0..10 {
            assert!(
                limits
                    .count(Rate::Credentials, [127, 0, 0, 1].into())
                    .is_ok()
            );
        }
    }
}
