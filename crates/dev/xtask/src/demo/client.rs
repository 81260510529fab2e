//! Calls that are shown, and made again when a process was away for a moment.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::Value;
use ureq::{Agent, http::Request};

use crate::{demo::show, http};

/// How long a call is repeated while nobody answers it.
const PATIENCE: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Talks to one base url.
pub struct Client {
    agent: Agent,
    base: String,
    /// Whether requests and answers are printed; polling is not.
    pub quiet: bool,
}

/// One request.
#[derive(Clone)]
pub struct Call<'call> {
    /// The method.
    pub method: &'static str,
    /// The path with its query.
    pub path: String,
    /// The bearer token.
    pub token: Option<&'call str>,
    /// The JSON body; `null` in an answer without one.
    pub body: Option<Value>,
}

/// Its answer.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The JSON body; `null` in an answer without one.
    pub body: Value,
    /// Whether an earlier try may have had its effect although nobody heard the answer.
    pub repeated: bool,
    what: String,
}

enum Attempt {
    Answered { status: u16, body: Value },
    Trouble(Trouble),
}

/// Why a call is made again.
struct Trouble {
    text: String,
    asked_pause: Duration,
    perhaps_done: bool,
}

impl<'call> Call<'call> {
    /// A request or client with the defaults.
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

impl Answer {
    /// The answer, if it has this status.
    pub fn expect(self, status: u16) -> anyhow::Result<Self> {
        if self.status == status {
            return Ok(self);
        }
        bail!(
            "{} answered {} where {status} was expected: {}",
            self.what,
            self.status,
            self.body
        )
    }

    /// A text of the body, by its JSON pointer.
    pub fn text(&self, pointer: &str) -> anyhow::Result<&str> {
        self.body
            .pointer(pointer)
            .and_then(Value::as_str)
            .with_context(|| {
                format!(
                    "{} answered without a text at {pointer}: {}",
                    self.what, self.body
                )
            })
    }

    /// The `code` of a problem, or nothing.
    pub fn code(&self) -> &str {
        self.body
            .get("code")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

impl Client {
    /// A request or client with the defaults.
    pub fn new(base: &str) -> Self {
        Self {
            agent: http::agent(Duration::from_secs(30)),
            base: base.to_owned(),
            quiet: false,
        }
    }

    /// For [`Self::once`]: gives an answer no longer than `timeout`.
    pub fn impatient(base: &str, timeout: Duration) -> Self {
        Self {
            agent: http::agent(timeout),
            ..Self::new(base)
        }
    }

    /// Makes a call until somebody answers it. A call that is repeated may have had its effect already:
    /// see [`Answer::repeated`].
    pub fn call(&self, call: &Call<'_>) -> anyhow::Result<Answer> {
        let what = format!("{} {}", call.method, show::path(&call.path));
        if !self.quiet {
            show::request(call);
        }
        let begin = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut repeated = false;
        loop {
            let trouble = match self.attempt(call) {
                Attempt::Answered { status, body } => {
                    return Ok(Answer {
                        status,
                        body,
                        repeated,
                        what,
                    });
                }
                Attempt::Trouble(trouble) => trouble,
            };
            repeated |= trouble.perhaps_done;
            pause = pause.max(trouble.asked_pause);
            if begin.elapsed() + pause > PATIENCE {
                bail!(
                    "{what} {}, for {} s",
                    trouble.text,
                    begin.elapsed().as_secs()
                );
            }
            show::pause(&what, &trouble.text, pause);
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn attempt(&self, call: &Call<'_>) -> Attempt {
        let start = Instant::now();
        let (status, retry_after, body) = match self.once(call) {
            Ok(answer) => answer,
            Err(error) => {
                return Attempt::Trouble(Trouble {
                    text: format!("was not answered: {error}"),
                    asked_pause: Duration::ZERO,
                    perhaps_done: true,
                });
            }
        };
        match pause_asked_for(status, retry_after, &body) {
            Some(asked_pause) => Attempt::Trouble(Trouble {
                text: format!("answered {status}"),
                asked_pause,
                // A rate limit refuses before anything has happened.
                perhaps_done: status != 429,
            }),
            None => {
                if !self.quiet {
                    show::answer(status, start.elapsed(), &body);
                }
                Attempt::Answered { status, body }
            }
        }
    }

    /// Makes a call once: status, pause that was asked for, body.
    pub fn once(&self, call: &Call<'_>) -> Result<(u16, Option<u64>, Value), ureq::Error> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.base, call.path));
        if let Some(token) = call.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut answer = match &call.body {
            Some(body) => {
                let body = body.to_string();
                self.agent.run(
                    request
                        .header("content-type", "application/json")
                        .body(body)?,
                )?
            }
            None => self.agent.run(request.body(())?)?,
        };
        let status = answer.status().as_u16();
        let retry_after = answer
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let text = answer.body_mut().read_to_string()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok((status, retry_after, body))
    }
}

/// How long to wait before the same call again; `None` when the answer is one to go on with.
fn pause_asked_for(status: u16, retry_after: Option<u64>, body: &Value) -> Option<Duration> {
    // This one says that the system is set up without the feature, and waiting does not change it.
    let for_good = body
        .get("code")
        .is_some_and(|code| code == "forgot-password-not-configured");
    match status {
        502..=504 if !for_good => {
            Some(Duration::from_secs(retry_after.unwrap_or(0)).min(LONGEST_PAUSE))
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
    fn only_an_absence_and_a_limit_are_waited_for() {
        assert_eq!(pause_asked_for(200, None, &json!({})), None);
        assert_eq!(pause_asked_for(409, None, &json!({})), None);
        assert_eq!(pause_asked_for(502, None, &json!({})), Some(Duration::ZERO));
        assert_eq!(
            pause_asked_for(503, Some(1), &json!({})),
            Some(Duration::from_secs(1))
        );
        assert_eq!(
            pause_asked_for(429, Some(7), &json!({})),
            Some(Duration::from_secs(7))
        );
        let for_good = json!({"code": "forgot-password-not-configured"});
        assert_eq!(pause_asked_for(503, None, &for_good), None);
    }
}
