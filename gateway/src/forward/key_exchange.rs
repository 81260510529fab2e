//! Asks the user service for the token of a key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt;
use actix_web::web::Data;
use auth::{ApiKey, ExchangedKey};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use http_kit::{Problem, client_network};
use hyper::body::Incoming;
use telemetry::CallOutcome;
use tokio::time::{sleep, timeout};
use values::Secret;

use super::headers::identify;
use super::in_time;
use crate::client_info::ClientInfo;
use crate::context::AppState;
use crate::keys::{Answer, Entry, KeyToken, Refusal, UNAVAILABLE_FOR, record};
use crate::limits::concurrency::acquire;
use crate::limits::turns::Turn;
use crate::routes::{Service, Work};
use crate::upstream::UpstreamClient;

const PATH: &str = "/internal/keys/exchange";
/// For one attempt.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// The first may meet a connection that the user service has just closed.
const ATTEMPTS: usize = 2;
/// The longest answer in bytes.
const MAX_ANSWER: usize = 16 * 1024;
/// What a network must wait that the user service tells no time.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// On whose behalf the user service is asked, and by what.
#[derive(Clone)]
pub(super) struct Asking {
    pub(super) state: Data<AppState>,
    pub(super) http_client: UpstreamClient,
    pub(super) client: Arc<ClientInfo>,
}

impl Asking {
    /// The token of a key; otherwise the problem of a [`Refusal`].
    pub(super) async fn token(&self, key: &ApiKey) -> Result<Arc<KeyToken>, Problem> {
        let entry = self.state.keys.entry(key.fingerprint());
        match entry.current() {
            Some(Ok(token)) => {
                if token.is_stale() {
                    self.clone().refresh(entry, key.clone());
                }
                Ok(token)
            }
            Some(Err(refusal)) => {
                if matches!(refusal, Refusal::Invalid | Refusal::Off(_)) {
                    record("refused-again");
                }
                Err(refusal.into())
            }
            None => self.first_token(&entry, key).await,
        }
    }

    /// Asks the user service, unless another request has just done so.
    async fn first_token(
        &self,
        entry: &Arc<Entry>,
        key: &ApiKey,
    ) -> Result<Arc<KeyToken>, Problem> {
        let _alone = in_time(async { Ok(entry.asking.lock().await) }).await?;
        if let Some(answer) = entry.current() {
            return Ok(answer?);
        }
        let answer = match self.wait_of_network() {
            Some(wait) => Err(Refusal::TooManyAttempts(wait)),
            None => {
                let _turn = self.turn().await?;
                self.exchange(key).await
            }
        };
        let answer = self.state.keys.note(key.fingerprint(), entry, answer);
        if matches!(answer, Err(Refusal::Invalid)) && entry.is_new_guess() {
            self.count_guess();
        }
        Ok(answer?)
    }

    /// How long the network must wait because of texts that were no keys.
    fn wait_of_network(&self) -> Option<Duration> {
        let network = client_network(self.client.address);
        let until = self.state.keys.failing.get(&network)?;
        until.checked_duration_since(Instant::now())
    }

    /// Exchanges a key once more, behind the request that uses its present token.
    fn refresh(self, entry: Arc<Entry>, key: ApiKey) {
        let Ok(alone) = Arc::clone(&entry.asking).try_lock_owned() else {
            return;
        };
        rt::spawn(async move {
            let answer = self.exchange(&key).await;
            let is_unavailable = matches!(answer, Err(Refusal::Unavailable));
            let _ = self.state.keys.note(key.fingerprint(), &entry, answer);
            if is_unavailable {
                // The next request would ask again at once.
                sleep(UNAVAILABLE_FOR).await;
            }
            drop(alone);
        });
    }

    /// Counts a text that cannot be a key, unless it has come before: a program with a mistyped key would use up the limit of
    /// its network.
    pub(super) fn refuse_text(&self, text: &str) {
        let entry = self.state.keys.entry(Secret::new(text).fingerprint());
        let is_new = entry.is_new_guess();
        record(if is_new { "refused" } else { "refused-again" });
        if is_new {
            self.count_guess();
        }
    }

    /// Counts a try with a text that is no key towards the limit on passwords of its network.
    fn count_guess(&self) {
        let address = self.client.address;
        if let Some(wait) = self.state.rate_limits.count_failed_key(address) {
            let until = Instant::now() + wait;
            let failing = &self.state.keys.failing;
            failing.insert(client_network(address), until);
        }
    }

    /// Waits for the turn of the client's network, as its other requests to the user service do.
    async fn turn(&self) -> Result<Option<Turn>, Problem> {
        let address = self.client.address;
        if !self.state.rate_limits.apply_to(address) {
            return Ok(None);
        }
        let turn = self.state.turns.wait(address, Service::User, Work::Short);
        in_time(turn).await.map(Some)
    }

    async fn exchange(&self, key: &ApiKey) -> Answer {
        let circuit = self.state.circuit_breakers.of(Service::User);
        let in_flight = self.state.concurrency.in_flight.of(Service::User);
        let in_flight = acquire(in_flight, self.client.address, 1);
        let (Ok(_in_flight), Ok(circuit)) = (in_flight, circuit.acquire()) else {
            return Err(Refusal::Unavailable);
        };
        let answer = ask(key, self).await;
        match answer {
            Some(_) => circuit.record_response(),
            None => circuit.record_failure(),
        }
        let answer = answer.unwrap_or(Err(Refusal::Unavailable));
        match answer {
            Ok(_) => record("exchanged"),
            Err(Refusal::Invalid | Refusal::Off(_)) => record("refused"),
            Err(Refusal::Unavailable) => record("unavailable"),
            Err(Refusal::TooManyAttempts(_)) => {}
        }
        answer
    }
}

/// The answer of the user service; `None` if it does not respond.
async fn ask(key: &ApiKey, asking: &Asking) -> Option<Answer> {
    let body = Bytes::from(serde_json::json!({"key": key.expose()}).to_string());
    let service = asking.state.upstreams.of(Service::User);
    let uri = service.uri(PATH, None).ok()?;
    let outcome = |response: &Option<Response<Incoming>>| match response {
        Some(response) if !response.status().is_server_error() => CallOutcome::Success,
        _ => CallOutcome::Failure,
    };
    for _ in 0..ATTEMPTS {
        let request = Request::post(&uri).header(CONTENT_TYPE, "application/json");
        let mut request = request.body(Full::new(body.clone())).ok()?;
        identify(request.headers_mut(), &asking.client);
        let sent = timeout(TIME_LIMIT, asking.http_client.request(request));
        let sent = async { sent.await.ok()?.ok() };
        if let Some(response) = telemetry::outgoing("key-exchange", sent, outcome).await {
            return read(response).await;
        }
    }
    None
}

async fn read(response: Response<Incoming>) -> Option<Answer> {
    let wait = response.headers().get(RETRY_AFTER);
    let seconds = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
    let wait = seconds.map(Duration::from_secs);
    let refusal = match response.status() {
        StatusCode::OK => None,
        StatusCode::UNAUTHORIZED => Some(wait.map_or(Refusal::Invalid, Refusal::Off)),
        StatusCode::TOO_MANY_REQUESTS => {
            Some(Refusal::TooManyAttempts(wait.unwrap_or(DEFAULT_WAIT)))
        }
        _ => Some(Refusal::Unavailable),
    };
    if let Some(refusal) = refusal {
        return Some(Err(refusal));
    }
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect();
    let body = timeout(TIME_LIMIT, body).await.ok()?.ok()?.to_bytes();
    let Ok(ExchangedKey { token, seconds }) = serde_json::from_slice(&body) else {
        return Some(Err(Refusal::Unavailable));
    };
    let lifetime = Duration::from_secs(seconds);
    Some(Ok(Arc::new(KeyToken::new(Secret::new(token), lifetime))))
}
