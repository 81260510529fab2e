use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use actix_web::http::header::HttpDate;
use app_config::Reader;
use reqwest::Response;
use reqwest::header::{DATE, HeaderMap};
use telemetry::{CallOutcome, CertificateFault, Outage};
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{FeedReader, FeedSource, JwkSet, RevocationFeed, Verifier};

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
const STALE_AFTER: Duration = Duration::from_secs(5);
/// How far apart clocks may be. Tokens that are twice as far in the future are refused.
const CLOCKS_APART: Duration = Duration::from_secs(15);
const KEYS_INTERVAL: Duration = Duration::from_secs(60);
/// The minimum time between two requests for the keys, however many tokens name an unknown key.
const MIN_KEYS_INTERVAL: Duration = Duration::from_millis(250);
/// How long a request with an unknown key waits for the keys, and how many requests may wait.
const MAX_KEYS_WAIT: Duration = Duration::from_secs(3);
const MAX_KEYS_WAITERS: usize = 256;

app_config::settings! {
    /// The issuer of tokens and their audience.
    pub struct RemoteSettings {
        /// The user service, which publishes keys and raised epochs.
        pub user_service_url: Url = required("USER_SERVICE_URL", "the URL of the user service."),
        /// The `iss` of valid tokens.
        pub issuer: String = by(read_issuer),
        /// The `aud` of valid tokens.
        pub audience: String = by(read_audience),
    }
}

/// Reads `TOKEN_ISSUER`.
///
/// # Errors
/// The setting is invalid.
pub fn read_issuer(reader: &mut Reader) -> Result<String, app_config::Error> {
    reader.or_default("TOKEN_ISSUER", "countersign", "The `iss` of tokens.")
}

/// Reads `TOKEN_AUDIENCE`.
///
/// # Errors
/// The setting is invalid.
pub fn read_audience(reader: &mut Reader) -> Result<String, app_config::Error> {
    reader.or_default("TOKEN_AUDIENCE", "countersign", "The `aud` of tokens.")
}

/// Keeps a [`Verifier`] up to date with the user service's keys and raised epochs.
///
/// While the user service is unavailable, the verifier keeps its keys and epochs, and [`RemoteAuthority::is_fresh`]
/// and the metric `revocation_feed_age_seconds` report their age.
#[derive(Debug)]
pub struct RemoteAuthority {
    client: reqwest::Client,
    user_service: Url,
    verifier: Arc<Verifier>,
    clocks: Outage,
    started: Instant,
    /// Milliseconds from `started` to the last complete poll; 0 before the first.
    last_poll: AtomicU64,
    keys_wanted: Notify,
    /// When the last attempt to fetch the keys began, and whether it succeeded.
    keys_fetched: watch::Sender<Option<(Instant, bool)>>,
    keys_waiters: Semaphore,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the user service's certificate was refused: {0}")]
    Certificate(CertificateFault),
    #[error("the request to the user service failed")]
    Http(#[source] reqwest::Error),
}

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        match CertificateFault::find(&error) {
            Some(fault) => Self::Certificate(fault),
            None => Self::Http(error),
        }
    }
}

impl RemoteAuthority {
    /// Creates an authority without keys and epochs. [`RemoteAuthority::run`] loads them.
    ///
    /// # Errors
    /// The HTTP client cannot be created.
    pub fn new(settings: &RemoteSettings) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(REQUEST_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self {
            client,
            user_service: settings.user_service_url.clone(),
            verifier: Arc::new(Verifier::new(&settings.issuer, &settings.audience)),
            clocks: Outage::new("the clocks of this machine and of the user service differ"),
            started: Instant::now(),
            last_poll: AtomicU64::new(0),
            keys_wanted: Notify::new(),
            keys_fetched: watch::Sender::new(None),
            keys_waiters: Semaphore::new(MAX_KEYS_WAITERS),
        })
    }

    /// The verifier that this authority keeps up to date.
    pub fn verifier(&self) -> Arc<Verifier> {
        Arc::clone(&self.verifier)
    }

    /// Whether keys and epochs have been read completely.
    pub fn is_ready(&self) -> bool {
        let has_polled = self.last_poll.load(Ordering::Acquire) > 0;
        has_polled && self.verifier.revocations().is_complete() && self.verifier.has_keys()
    }

    /// Whether the last poll is recent.
    pub fn is_fresh(&self) -> bool {
        self.is_ready() && self.age() < STALE_AFTER
    }

    fn age(&self) -> Duration {
        let last = Duration::from_millis(self.last_poll.load(Ordering::Acquire));
        self.started.elapsed().saturating_sub(last)
    }

    /// Follows the keys and the revocation feed until it is cancelled.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let following = async { tokio::join!(self.follow_keys(), self.follow_feed()) };
        shutdown.run_until_cancelled(following).await;
    }

    async fn follow_feed(&self) {
        let mut reader = FeedReader::new(self.verifier());
        let failing = Outage::new("cannot read revocations; using the known ones");
        loop {
            let started = Instant::now();
            let polled = reader.poll(&RemoteFeed(self)).await;
            if polled.is_ok() {
                let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.last_poll.store(now.max(1), Ordering::Release);
            }
            failing.record(&polled);
            metrics::gauge!("revocation_feed_age_seconds").set(self.age().as_secs_f64());
            // The user service lets a poll without changes wait, and responds to one with changes at once.
            tokio::time::sleep(POLL_INTERVAL.saturating_sub(started.elapsed())).await;
        }
    }

    /// The only task that fetches the keys. So any number of requests with an unknown key cause one fetch.
    async fn follow_keys(&self) {
        let failing = Outage::new("cannot read keys; using the known ones");
        loop {
            let started = Instant::now();
            let fetched = self.fetch_keys().await;
            let succeeded = fetched.is_ok();
            failing.record(&fetched);
            self.keys_fetched.send_replace(Some((started, succeeded)));
            let pause = if succeeded {
                KEYS_INTERVAL
            } else {
                POLL_INTERVAL
            };
            // A timeout means that no request needs the keys earlier.
            let _ = tokio::time::timeout(pause, self.keys_wanted.notified()).await;
            tokio::time::sleep(MIN_KEYS_INTERVAL.saturating_sub(started.elapsed())).await;
        }
    }

    /// Waits until the keys have been fetched after this call. `false` if that failed or took too long.
    pub async fn refresh_keys(&self) -> bool {
        let asked = Instant::now();
        let Ok(_waiter) = self.keys_waiters.try_acquire() else {
            return false;
        };
        let mut fetched = self.keys_fetched.subscribe();
        self.keys_wanted.notify_one();
        let is_later = |last: &Option<(Instant, bool)>| last.is_some_and(|(at, _)| at >= asked);
        let waiting = tokio::time::timeout(MAX_KEYS_WAIT, fetched.wait_for(is_later)).await;
        matches!(waiting, Ok(Ok(last)) if matches!(*last, Some((_, true))))
    }

    /// The URL of a path at the user service, whose own URL may have a path.
    fn url(&self, path: &str) -> Url {
        let mut url = self.user_service.clone();
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        url
    }

    async fn get(&self, destination: &'static str, url: Url) -> Result<Response, reqwest::Error> {
        let outcome =
            |result: &Result<Response, _>| CallOutcome::of(result, |r| r.status().as_u16());
        telemetry::outgoing(destination, self.client.get(url).send(), outcome).await
    }

    async fn fetch_keys(&self) -> Result<(), FetchError> {
        let url = self.url("/.well-known/jwks.json");
        let response = self.get("jwks", url).await?.error_for_status()?;
        let keys: JwkSet = response.json().await?;
        self.verifier.set_keys(&keys);
        Ok(())
    }
}

struct RemoteFeed<'a>(&'a RemoteAuthority);

impl FeedSource for RemoteFeed<'_> {
    type Error = FetchError;

    async fn read(&self, cursor: Option<&str>) -> Result<RevocationFeed, FetchError> {
        let Self(authority) = self;
        let mut url = authority.url("/internal/revocations");
        url.query_pairs_mut()
            .append_pair("limit", &FeedReader::PAGE.to_string())
            .append_pair("wait", &FeedReader::MAX_WAIT.as_millis().to_string())
            .extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        let response = authority.get("revocation-feed", url).await?;
        compare_clocks(response.headers(), &authority.clocks);
        Ok(response.error_for_status()?.json().await?)
    }
}

/// Warns before the clocks of two machines are so far apart that tokens are refused.
fn compare_clocks(headers: &HeaderMap, clocks: &Outage) {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let Some(Ok(date)) = date.map(str::parse::<HttpDate>) else {
        return;
    };
    let ahead = SystemTime::now().duration_since(date.into());
    let apart = ahead.unwrap_or_else(|behind| behind.duration());
    if apart > CLOCKS_APART {
        clocks.fail(&Duration::from_secs(apart.as_secs()));
    } else {
        clocks.end();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use actix_web::http::header::HttpDate;
    use reqwest::header::{DATE, HeaderMap};
    use telemetry::Outage;

    use super::compare_clocks;

    #[test]
    fn clocks_that_are_an_hour_apart_are_an_outage_until_they_agree() {
        let clocks = Outage::new("the clocks differ");
        let (now, hour) = (SystemTime::now(), Duration::from_hours(1));
        for (date, failures) in [(now, 0), (now - hour, 1), (now + hour, 2), (now, 0)] {
            let date = HttpDate::from(date).to_string().parse().unwrap();
            compare_clocks(&HeaderMap::from_iter([(DATE, date)]), &clocks);
            assert_eq!(clocks.failures(), failures);
        }
        compare_clocks(&HeaderMap::new(), &clocks);
        assert_eq!(clocks.failures(), 0);
    }
}
