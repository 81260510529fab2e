//! How many requests one client address may send.
//!
//! The counts live in the process, so each replica counts for itself. The back-off of sign-in, which guards
//! an account, lives in the database and holds over all of them.
//!
//! Callers see where they stand by the headers of draft-ietf-httpapi-ratelimit-headers-10.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use app_config::SettingValue;
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http_kit::{Problem, client_network, whole_seconds};

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
    limiter: DefaultKeyedRateLimiter<IpAddr, StateInformationMiddleware>,
    name: &'static str,
    /// The limit in the form of the `RateLimit-Policy` header.
    policy: HeaderValue,
    /// How long it takes until one more request may come, in seconds.
    refill: u64,
}

/// Where a caller stands after a request: the two headers.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    policy: HeaderValue,
    left: HeaderValue,
}

impl Standing {
    const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
    const LEFT: HeaderName = HeaderName::from_static("ratelimit");

    /// Tells the caller, beside what a service says about limits of its own.
    pub(crate) fn tell(self, headers: &mut HeaderMap) {
        headers.append(Self::POLICY, self.policy);
        headers.append(Self::LEFT, self.left);
    }

    /// Tells the caller of a problem.
    pub(crate) fn tell_with(self, problem: Problem) -> Problem {
        problem
            .header(Self::POLICY, self.policy)
            .header(Self::LEFT, self.left)
    }
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

    /// Counts a request; `None` when there are no limits.
    ///
    /// # Errors
    /// `429 rate-limited` with `Retry-After` when it is one too many.
    pub(crate) fn count(&self, rate: Rate, client: IpAddr) -> Result<Option<Standing>, Problem> {
        match &self.0 {
            None => Ok(None),
            Some(limits) => limits.of(rate).count(client).map(Some),
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
        let policy = format!("\"{name}\";q={burst};w={}", whole_seconds(window));
        Self {
            limiter: RateLimiter::keyed(quota).with_middleware(),
            name,
            policy: value(&policy),
            refill: whole_seconds(quota.replenish_interval()),
        }
    }

    fn count(&self, client: IpAddr) -> Result<Standing, Problem> {
        match self.limiter.check_key(&client_network(client)) {
            Ok(state) => Ok(self.standing(state.remaining_burst_capacity(), self.refill)),
            Err(early) => {
                metrics::counter!("gateway_requests_rate_limited_total", "limit" => self.name)
                    .increment(1);
                let wait = early.wait_time_from(DefaultClock::default().now());
                Err(self.exceeded(wait))
            }
        }
    }

    fn exceeded(&self, wait: Duration) -> Problem {
        let seconds = whole_seconds(wait);
        let problem = Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "rate-limited",
            format!("Too many requests from your address. Try again in {seconds} s."),
        )
        .with("violated-policies", vec![self.name])
        .retry_after(wait);
        self.standing(0, seconds).tell_with(problem)
    }

    /// So many requests are left, and one more may come after so many seconds.
    fn standing(&self, left: u32, seconds: u64) -> Standing {
        Standing {
            policy: self.policy.clone(),
            left: value(&format!("\"{}\";r={left};t={seconds}", self.name)),
        }
    }
}

impl std::fmt::Debug for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Limit({:?})", self.policy)
    }
}

/// Names and numbers are always a header's value.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn positive(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use actix_web::ResponseError as _;
    use actix_web::http::header::HeaderMap;

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
        let wait: u64 = header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&wait));
        assert_eq!(header("ratelimit-policy"), "\"credentials\";q=2;w=120");
        assert_eq!(header("ratelimit"), format!("\"credentials\";r=0;t={wait}"));
        assert!(count("198.51.100.8").is_ok());
        assert!(
            limits
                .count(Rate::Normal, "198.51.100.7".parse().unwrap())
                .is_ok()
        );
    }

    #[test]
    fn a_request_that_is_allowed_says_how_many_are_left() {
        let limits = limits(RateLimit::On);
        for left in [1, 0] {
            let mut headers = HeaderMap::new();
            let standing = limits.count(Rate::Credentials, [198, 51, 100, 7].into());
            standing.unwrap().unwrap().tell(&mut headers);
            assert_eq!(
                headers.get("ratelimit-policy").unwrap(),
                "\"credentials\";q=2;w=120"
            );
            let expected = format!("\"credentials\";r={left};t=60");
            assert_eq!(headers.get("ratelimit").unwrap(), expected.as_str());
        }
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
            let standing = limits.count(Rate::Credentials, [127, 0, 0, 1].into());
            assert!(standing.unwrap().is_none());
        }
    }
}
