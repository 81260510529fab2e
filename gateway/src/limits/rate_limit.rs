//! Limits how many requests one client address may send.
//!
//! Each replica counts for itself, in memory. The back-off of sign-in, which protects an account, is in the
//! database and holds across replicas.
//!
//! Responses carry the headers of draft-ietf-httpapi-ratelimit-headers-10.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use app_config::{Networks, Switch};
use fairness::{Remainder, Shares};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http_kit::{Problem, client_network, whole_seconds};
use tokio::time::sleep;
use values::CredentialId;

use crate::limits::concurrency;
use crate::routes::RateClass;
use crate::settings::RateLimitSettings;

/// How long a refused request waits for its response, so that a client that ignores `Retry-After` sends fewer of
/// them: a refusal costs nearly as much as a short response.
const REFUSAL_PAUSE: Duration = Duration::from_millis(500);

/// Refused requests that wait at the same time: few beside the connections that they hold.
const MAX_PAUSING: u64 = 256;

/// How many API keys the users of one address may make: in a minute, and at once.
const KEYS_PER_MINUTE: u32 = 300;
const KEYS_BURST: u32 = 100;

pub(crate) struct RateLimits(Option<Limits>);

struct Limits {
    /// Refused requests that wait for their response.
    pausing: Arc<Shares<IpAddr>>,
    normal: Limit,
    credentials: Limit,
    keys: Limit,
    exempt: Networks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Counted {
    Network(IpAddr),
    Key(CredentialId),
}

struct Limit {
    limiter: DefaultKeyedRateLimiter<Counted, StateInformationMiddleware>,
    name: &'static str,
    policy: HeaderValue,
    /// Seconds until one more request is allowed.
    refill: u64,
}

/// The state of a caller's limit, sent in two headers.
#[derive(Debug, Clone)]
pub(crate) struct RateLimitStatus {
    policy: HeaderValue,
    remaining: HeaderValue,
}

impl RateLimitStatus {
    const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
    const REMAINING: HeaderName = HeaderName::from_static("ratelimit");

    /// Adds the headers to those of a service about its own limits.
    pub(crate) fn write_headers(self, headers: &mut HeaderMap) {
        headers.append(Self::POLICY, self.policy);
        headers.append(Self::REMAINING, self.remaining);
    }
}

impl RateLimits {
    pub(crate) fn new(settings: &RateLimitSettings) -> Self {
        if settings.mode == Switch::Off {
            return Self(None);
        }
        let per_second = settings.requests_per_second;
        let normal = Quota::per_second(positive(per_second));
        let credentials = Quota::per_minute(positive(settings.credentials_per_minute));
        let keys = Quota::per_minute(positive(KEYS_PER_MINUTE));
        Self(Some(Limits {
            pausing: Shares::new(Remainder(MAX_PAUSING)),
            normal: Limit::new("requests", normal, per_second.saturating_mul(2)),
            credentials: Limit::new("credentials", credentials, settings.credentials_burst),
            keys: Limit::new("keys", keys, KEYS_BURST),
            exempt: settings.exempt.clone(),
        }))
    }

    /// Whether there are limits on most requests of a client.
    pub(crate) fn apply_to(&self, client: IpAddr) -> bool {
        let limits = self.0.as_ref();
        limits.is_some_and(|limits| !limits.exempt.contains(client))
    }

    /// Counts a request, by its API key if there is one and it is no try of a password; `None` when there is no limit.
    /// `429 rate-limited` comes usually after [`REFUSAL_PAUSE`].
    pub(crate) async fn count(
        &self,
        rate: RateClass,
        client: IpAddr,
        key: Option<CredentialId>,
    ) -> Result<Option<RateLimitStatus>, Problem> {
        let counted = self.count_at_once(rate, client, key);
        if let (Err(_), Some(limits)) = (&counted, &self.0)
            && let Ok(_share) = concurrency::try_acquire(&limits.pausing, client, 1)
        {
            sleep(REFUSAL_PAUSE).await;
        }
        counted
    }

    /// Counts a text that is no API key as a guess of a password. If there are too many, returns how long the network must wait.
    pub(crate) fn count_failed_key(&self, client: IpAddr) -> Option<Duration> {
        let limit = &self.0.as_ref()?.credentials;
        let counted = Counted::Network(client_network(client));
        let early = limit.limiter.check_key(&counted).err()?;
        Some(early.wait_time_from(DefaultClock::default().now()))
    }

    fn count_at_once(
        &self,
        rate: RateClass,
        client: IpAddr,
        key: Option<CredentialId>,
    ) -> Result<Option<RateLimitStatus>, Problem> {
        let limit = match (&self.0, rate) {
            (Some(limits), RateClass::Credentials) => &limits.credentials,
            (Some(limits), RateClass::Keys) => &limits.keys,
            (Some(limits), RateClass::Normal) if self.apply_to(client) => &limits.normal,
            _ => return Ok(None),
        };
        let key = key.filter(|_| rate == RateClass::Normal);
        let network = || Counted::Network(client_network(client));
        let counted = key.map_or_else(network, Counted::Key);
        limit.count(counted).map(Some)
    }

    /// Removes the addresses whose limit is fully replenished.
    pub(crate) fn remove_idle(&self) {
        if let Some(limits) = &self.0 {
            for limit in [&limits.normal, &limits.credentials, &limits.keys] {
                limit.limiter.retain_recent();
                limit.limiter.shrink_to_fit();
            }
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

    fn count(&self, counted: Counted) -> Result<RateLimitStatus, Problem> {
        match self.limiter.check_key(&counted) {
            Ok(state) => Ok(self.status(state.remaining_burst_capacity(), self.refill)),
            Err(early) => {
                metrics::counter!("gateway_requests_rate_limited_total", "limit" => self.name)
                    .increment(1);
                let wait = early.wait_time_from(DefaultClock::default().now());
                Err(self.exceeded(counted, wait))
            }
        }
    }

    fn exceeded(&self, counted: Counted, wait: Duration) -> Problem {
        let from = match counted {
            Counted::Network(_) => "from your address",
            Counted::Key(_) => "with your API key",
        };
        let seconds = whole_seconds(wait);
        let status = self.status(0, seconds);
        let detail = format!("Too many requests {from}. Try again in {seconds} s.");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate-limited", detail)
            .with("violated-policies", vec![self.name])
            .retry_after(wait)
            .header(RateLimitStatus::POLICY, status.policy)
            .header(RateLimitStatus::REMAINING, status.remaining)
    }

    /// `remaining` requests are left, and one more is allowed after `seconds`.
    fn status(&self, remaining: u32, seconds: u64) -> RateLimitStatus {
        RateLimitStatus {
            policy: self.policy.clone(),
            remaining: value(&format!("\"{}\";r={remaining};t={seconds}", self.name)),
        }
    }
}

/// Names and numbers are always a valid header value.
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
    use app_config::{Networks, SettingValue as _, Switch};
    use values::CredentialId;

    use super::RateLimits;
    use crate::routes::RateClass;
    use crate::settings::RateLimitSettings;

    fn limits(mode: Switch) -> RateLimits {
        RateLimits::new(&RateLimitSettings {
            mode,
            requests_per_second: 1000,
            credentials_per_minute: 1,
            credentials_burst: 2,
            exempt: Networks::parse("10.0.0.0/8").unwrap(),
        })
    }

    #[test]
    fn the_list_of_metrics_names_every_limit() {
        let limits = limits(Switch::On).0.unwrap();
        let mut names = [limits.normal, limits.credentials, limits.keys].map(|limit| limit.name);
        names.sort_unstable();
        let mut metrics = telemetry::METRICS.iter();
        let metric = metrics.find(|metric| metric.name == "gateway_requests_rate_limited_total");
        assert_eq!(metric.unwrap().labels[0].values, names);
    }

    #[test]
    fn the_limit_of_one_address_does_not_affect_others() {
        let limits = limits(Switch::On);
        let count = |client: &str| {
            limits.count_at_once(RateClass::Credentials, client.parse().unwrap(), None)
        };
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
                .count_at_once(RateClass::Normal, "198.51.100.7".parse().unwrap(), None)
                .is_ok()
        );
    }

    #[test]
    fn an_allowed_request_reports_what_is_left() {
        let limits = limits(Switch::On);
        for left in [1, 0] {
            let mut headers = HeaderMap::new();
            let status =
                limits.count_at_once(RateClass::Credentials, [198, 51, 100, 7].into(), None);
            status.unwrap().unwrap().write_headers(&mut headers);
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
        let limits = limits(Switch::On);
        let count = |client: &str| {
            limits.count_at_once(RateClass::Credentials, client.parse().unwrap(), None)
        };
        assert!(count("2001:db8::1").is_ok());
        assert!(count("2001:db8::2").is_ok());
        assert!(count("2001:db8::3").is_err());
        assert!(count("2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn off_counts_nothing() {
        let limits = limits(Switch::Off);
        for _ in 0..10 {
            let status = limits.count_at_once(RateClass::Credentials, [127, 0, 0, 1].into(), None);
            assert!(status.unwrap().is_none());
        }
    }

    #[test]
    fn exempt_networks_are_limited_only_where_passwords_are_checked() {
        let limits = limits(Switch::On);
        let exempt = [10, 1, 2, 3].into();
        assert!(!limits.apply_to(exempt) && limits.apply_to([198, 51, 100, 7].into()));
        let count = |rate| limits.count_at_once(rate, exempt, None);
        for _ in 0..10_000 {
            assert!(count(RateClass::Normal).unwrap().is_none());
        }
        assert!(count(RateClass::Credentials).unwrap().is_some());
        assert!(count(RateClass::Credentials).is_ok());
        assert!(count(RateClass::Credentials).is_err());
    }

    #[tokio::test]
    async fn keys_of_one_address_have_limits_of_their_own() {
        let limits = RateLimits::new(&RateLimitSettings {
            mode: Switch::On,
            requests_per_second: 1,
            credentials_per_minute: 1,
            credentials_burst: 1,
            exempt: Networks::parse("10.0.0.0/8").unwrap(),
        });
        let client = [198, 51, 100, 7].into();
        let keys = [CredentialId::generate(), CredentialId::generate()];
        let count = |client, key| limits.count(RateClass::Normal, client, key);
        for key in keys {
            for _ in 0..2 {
                assert!(count(client, Some(key)).await.is_ok());
            }
            assert!(count(client, Some(key)).await.is_err());
        }
        assert!(count(client, None).await.is_ok());
        let exempt = count([10, 1, 2, 3].into(), Some(keys[0])).await;
        assert!(exempt.unwrap().is_none());
    }

    #[test]
    fn texts_that_are_no_keys_count_as_guesses_of_passwords() {
        let limits = limits(Switch::On);
        let client = [198, 51, 100, 7].into();
        assert_eq!(limits.count_failed_key(client), None);
        assert!(
            limits
                .count_at_once(RateClass::Credentials, client, None)
                .is_ok()
        );
        assert!(limits.count_failed_key(client).is_some());
        assert!(
            limits
                .count_at_once(RateClass::Credentials, client, None)
                .is_err()
        );
    }
}
