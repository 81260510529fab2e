//! An HTTP client that prints its calls, and repeats them while a process is unavailable.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::Value;
use ureq::{Agent, http::Request};

use crate::{http, transcript};

/// How long a call is repeated.
const RETRY_LIMIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(3);

/// Calls one base URL.
pub struct Client {
    agent: Agent,
    base: String,
    /// Whether calls are not printed.
    pub quiet: bool,
}

/// A request.
#[derive(Clone)]
pub struct Call<'call> {
    /// The method.
    pub method: &'static str,
    /// The path with the query.
    pub path: String,
    /// The bearer token.
    pub token: Option<&'call str>,
    /// The JSON body.
    pub body: Option<Value>,
}

/// A response.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The JSON body. A string if the body is not JSON.
    pub body: Value,
    /// Whether an earlier attempt may have taken effect although its response was lost.
    pub repeated: bool,
    call: String,
}

/// Why a call is repeated.
struct Failure {
    text: String,
    /// The pause that the server asked for.
    pause: Duration,
    /// Whether the call may have taken effect.
    uncertain: bool,
}

impl<'call> Call<'call> {
    /// Creates a request without token and body.
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            token: None,
            body: None,
        }
    }

    /// Adds a bearer token.
    pub fn token(self, token: &'call str) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// Adds a JSON body.
    pub fn body(self, body: Value) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }
}

impl Response {
    /// Fails if the status is another one.
    pub fn expect(self, status: u16) -> anyhow::Result<Self> {
        if self.status == status {
            return Ok(self);
        }
        bail!(
            "{} returned {} instead of {status}: {}",
            self.call,
            self.status,
            self.body
        )
    }

    /// Returns a string of the body by its JSON pointer.
    pub fn text(&self, pointer: &str) -> anyhow::Result<&str> {
        let text = self.body.pointer(pointer).and_then(Value::as_str);
        text.with_context(|| {
            format!(
                "the response of {} has no string at {pointer}: {}",
                self.call, self.body
            )
        })
    }

    /// Returns the `code` of a problem, and an empty string if there is none.
    pub fn code(&self) -> &str {
        self.body
            .get("code")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl Client {
    /// Creates a client that prints its calls.
    pub fn new(base: &str) -> Self {
        Self {
            agent: http::agent(Duration::from_secs(30)),
            base: base.to_owned(),
            quiet: false,
        }
    }

    /// Creates a client for [`Self::once`] that waits at most `timeout` for a response.
    pub fn with_timeout(base: &str, timeout: Duration) -> Self {
        Self {
            agent: http::agent(timeout),
            ..Self::new(base)
        }
    }

    /// Sends a request, and repeats it while the server is unavailable or limits the rate. A repeated call may
    /// have taken effect before: see [`Response::repeated`].
    pub fn call(&self, call: &Call<'_>) -> anyhow::Result<Response> {
        let name = format!("{} {}", call.method, transcript::path(&call.path));
        if !self.quiet {
            transcript::request(call.method, &call.path, call.token, call.body.as_ref());
        }
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut repeated = false;
        loop {
            let failure = match self.attempt(call) {
                Ok((status, body)) => {
                    return Ok(Response {
                        status,
                        body,
                        repeated,
                        call: name,
                    });
                }
                Err(failure) => failure,
            };
            repeated |= failure.uncertain;
            pause = pause.max(failure.pause);
            let elapsed = start.elapsed();
            if elapsed + pause > RETRY_LIMIT {
                bail!("{name} {}, for {} s", failure.text, elapsed.as_secs());
            }
            transcript::pause(&name, &failure.text, pause);
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn attempt(&self, call: &Call<'_>) -> Result<(u16, Value), Failure> {
        let start = Instant::now();
        let (status, retry_after, body) = self.once(call).map_err(|error| Failure {
            text: format!("got no response: {error}"),
            pause: Duration::ZERO,
            uncertain: true,
        })?;
        if let Some(pause) = retry_pause(status, retry_after, &body) {
            return Err(Failure {
                text: format!("returned {status}"),
                pause,
                // A rate limit refuses a request before it takes effect.
                uncertain: status != 429,
            });
        }
        if !self.quiet {
            transcript::response(status, start.elapsed(), &body);
        }
        Ok((status, body))
    }

    /// Sends a request once. Returns the status, the seconds of `Retry-After`, and the body.
    pub fn once(&self, call: &Call<'_>) -> Result<(u16, Option<u64>, Value), ureq::Error> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.base, call.path));
        if let Some(token) = call.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = match &call.body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string())?)?
            }
            None => self.agent.run(request.body(())?)?,
        };
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let text = response.body_mut().read_to_string()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok((status, retry_after, body))
    }
}

/// Returns the pause before the call is repeated. `None` if the response is final.
fn retry_pause(status: u16, retry_after: Option<u64>, body: &Value) -> Option<Duration> {
    // The system is configured without this feature, so a later attempt would fail, too.
    let is_permanent = body
        .get("code")
        .is_some_and(|code| code == "forgot-password-not-configured");
    match status {
        502..=504 if !is_permanent => {
            Some(Duration::from_secs(retry_after.unwrap_or(0)).min(MAX_PAUSE))
        }
        429 => Some(Duration::from_secs(retry_after.unwrap_or(1))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_unavailable_servers_and_rate_limits_cause_a_retry() {
        let permanent = json!({"code": "forgot-password-not-configured"});
        for (status, retry_after, body, expected) in [
            (200, None, json!({}), None),
            (409, None, json!({}), None),
            (502, None, json!({}), Some(Duration::ZERO)),
            (503, Some(1), json!({}), Some(Duration::from_secs(1))),
            (429, Some(7), json!({}), Some(Duration::from_secs(7))),
            (503, None, permanent, None),
        ] {
            assert_eq!(
                retry_pause(status, retry_after, &body),
                expected,
                "{status}"
            );
        }
    }
}
