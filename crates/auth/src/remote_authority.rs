use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use app_config::{Reader, Settings};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::{JwkSet, RevocationFeed, Verifier};

const POLL_INTERVAL: Duration = Duration::from_millis(500);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A feed that was not read for this long is stale.
const STALE_AFTER: Duration = Duration::from_secs(5);
/// A complete read drops epochs that no unexpired token is below.
const FULL_READ_INTERVAL: Duration = Duration::from_secs(3600);
const KEYS_INTERVAL: Duration = Duration::from_secs(60);
/// The minimum time between two requests for the keys because of a token with an unknown key.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The issuer of tokens and their audience.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// The user service, which publishes keys and raised epochs.
    pub user_service_url: Url,
    /// The `iss` of valid tokens.
    pub issuer: String,
    /// The `aud` of valid tokens.
    pub audience: String,
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

impl Settings for RemoteSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            user_service_url: reader
                .required("USER_SERVICE_URL", "the URL of the user service.")?,
            issuer: read_issuer(reader)?,
            audience: read_audience(reader)?,
        })
    }
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
    started: Instant,
    /// Milliseconds from `started` to the last complete poll; 0 before the first.
    last_poll: AtomicU64,
    keys_refreshed: Mutex<Option<Instant>>,
}

/// Why a poll failed.
#[derive(Debug, thiserror::Error)]
enum PollError {
    #[error("the URL of the user service is invalid")]
    Url(#[from] url::ParseError),
    #[error("the request to the user service failed")]
    Http(#[from] reqwest::Error),
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
            started: Instant::now(),
            last_poll: AtomicU64::new(0),
            keys_refreshed: Mutex::new(None),
        })
    }

    /// The verifier that this authority keeps up to date.
    #[must_use]
    pub fn verifier(&self) -> Arc<Verifier> {
        Arc::clone(&self.verifier)
    }

    /// Whether keys and epochs have been read completely.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.last_poll.load(Ordering::Acquire) > 0 && self.verifier.has_keys()
    }

    /// Whether the last poll is recent.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.is_ready() && self.age() < STALE_AFTER
    }

    fn age(&self) -> Duration {
        let last = Duration::from_millis(self.last_poll.load(Ordering::Acquire));
        self.started.elapsed().saturating_sub(last)
    }

    /// Polls until it is cancelled.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut cursor = None;
        let mut last_full_read = Instant::now();
        let mut failing = false;
        while !shutdown.is_cancelled() {
            if last_full_read.elapsed() > FULL_READ_INTERVAL {
                cursor = None;
            }
            if cursor.is_none() {
                last_full_read = Instant::now();
            }
            match self.poll(cursor).await {
                Ok(next) => {
                    cursor = Some(next);
                    let now = self.started.elapsed().as_millis();
                    let now = u64::try_from(now).unwrap_or(u64::MAX).max(1);
                    self.last_poll.store(now, Ordering::Release);
                    failing = false;
                }
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(error = ?error, "cannot read keys and revocations; using the known ones");
                }
                Err(_) => {}
            }
            metrics::gauge!("revocation_feed_age_seconds").set(self.age().as_secs_f64());
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = shutdown.cancelled() => {}
            }
        }
    }

    async fn poll(&self, cursor: Option<i64>) -> Result<i64, PollError> {
        let stale = {
            let refreshed = self.keys_refreshed.lock().await;
            refreshed.is_none_or(|at| at.elapsed() > KEYS_INTERVAL)
        };
        if stale || !self.verifier.has_keys() {
            self.fetch_keys().await?;
        }
        let mut url = self.user_service.join("/internal/revocations")?;
        if let Some(cursor) = cursor {
            url.set_query(Some(&format!("cursor={cursor}")));
        }
        let response = self.client.get(url).send().await?.error_for_status()?;
        let feed: RevocationFeed = response.json().await?;
        match cursor {
            Some(_) => self.verifier.revoked().raise(feed.epochs),
            None => self.verifier.revoked().replace(feed.epochs),
        }
        Ok(feed.cursor)
    }

    /// Loads the keys now, unless they were loaded within the last second. Returns whether it did.
    pub async fn refresh_keys(&self) -> bool {
        let recently = {
            let refreshed = self.keys_refreshed.lock().await;
            refreshed.is_some_and(|at| at.elapsed() < MIN_REFRESH_INTERVAL)
        };
        !recently && self.fetch_keys().await.is_ok()
    }

    async fn fetch_keys(&self) -> Result<(), PollError> {
        *self.keys_refreshed.lock().await = Some(Instant::now());
        let url = self.user_service.join("/.well-known/jwks.json")?;
        let response = self.client.get(url).send().await?.error_for_status()?;
        let keys: JwkSet = response.json().await?;
        self.verifier.set_keys(&keys);
        Ok(())
    }
}
