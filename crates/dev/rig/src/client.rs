//! The HTTP client of these commands. It can repeat calls while a process is unavailable, and print them.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use local_stack::random;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::http::Request;

use crate::{interrupt, transcript};

const RETRY_LIMIT: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(3);
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process may take to say whether it is ready.
const READINESS_TIMEOUT: Duration = Duration::from_secs(3);

pub struct Client {
    agent: Agent,
    base: String,
    is_printing: bool,
}

#[derive(Debug, Clone)]
pub struct Person {
    /// The address, which is the username, too.
    pub email: String,
    pub password: String,
    pub id: String,
    pub token: String,
}

#[derive(Clone)]
pub struct Call<'call> {
    pub method: &'static str,
    /// The path with the query.
    pub path: String,
    pub token: Option<&'call str>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<Value>,
}

pub struct Response {
    pub status: u16,
    /// The JSON body. A string if the body is not JSON.
    pub body: Value,
    call: String,
}

impl<'call> Call<'call> {
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            token: None,
            headers: Vec::new(),
            body: None,
        }
    }

    pub fn token(mut self, token: &'call str) -> Self {
        self.token = Some(token);
        self
    }

    pub fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

impl Response {
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
}

impl Client {
    pub fn new(base: &str) -> Self {
        Self::with_timeout(base, TIMEOUT)
    }

    pub fn printing(base: &str) -> Self {
        Self {
            is_printing: true,
            ..Self::new(base)
        }
    }

    pub fn with_timeout(base: &str, timeout: Duration) -> Self {
        // A redirect or an error status is a response like any other.
        let agent = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_global(Some(timeout))
            .build();
        Self {
            agent: agent.into(),
            base: base.to_owned(),
            is_printing: false,
        }
    }

    /// Creates a client that asks a process whether it is ready.
    pub fn of_process(base: &str) -> Self {
        Self::with_timeout(base, READINESS_TIMEOUT)
    }

    /// Whether `GET /readyz` returns 200.
    pub fn is_ready(&self) -> bool {
        let response = self.once(&Call::new("GET", "/readyz"));
        response.is_ok_and(|(status, ..)| status == 200)
    }

    /// What `GET /readyz` returns, or the error, for a message.
    pub fn readiness(&self) -> String {
        match self.once(&Call::new("GET", "/readyz")) {
            Ok((_, _, body)) => body.to_string(),
            Err(error) => error.to_string(),
        }
    }

    pub fn sign_up(&self, email: &str, password: &str) -> anyhow::Result<Person> {
        let body = json!({"email": email, "password": password});
        let response = self.call(&Call::new("POST", "/user").body(body))?;
        person(email, password, &response.expect(200)?)
    }

    /// Signs a user up whose address begins with this name.
    pub fn sign_up_new(&self, name: &str) -> anyhow::Result<Person> {
        let email = format!("{name}.{}@example.com", random::tag());
        self.sign_up(&email, &random::password())
    }

    pub fn sign_in(&self, username: &str, password: &str) -> anyhow::Result<Person> {
        let response = self.try_sign_in(username, password)?;
        person(username, password, &response.expect(200)?)
    }

    pub fn try_sign_in(&self, username: &str, password: &str) -> anyhow::Result<Response> {
        let body = json!({"username": username, "password": password});
        self.call(&Call::new("POST", "/user/auth").body(body))
    }

    /// Creates a task of which one person is the requester and the approver. Returns its identifier.
    pub fn create_task(&self, token: &str, title: &str, person: &str) -> anyhow::Result<String> {
        let task = json!({"title": title, "requester": person, "approver": person});
        let created = self.post("/people-task/tasks", token, task)?;
        created.text("/id").map(str::to_owned)
    }

    pub fn register_webhook(&self, token: &str, task: &str, url: &str) -> anyhow::Result<()> {
        let webhook = json!({"taskId": task, "url": url});
        self.post("/people-task/webhooks", token, webhook).map(drop)
    }

    pub fn approve(&self, token: &str, task: &str) -> anyhow::Result<()> {
        let path = format!("/people-task/tasks/{task}/approve");
        self.put(&path, token, json!({})).map(drop)
    }

    /// Starts the deletion of a user as an administrator. Returns the path of its status.
    pub fn start_deletion(&self, token: &str, user: &str) -> anyhow::Result<String> {
        let path = format!("/users/{user}");
        let deletion = self.delete(&path, token)?;
        let ticket = deletion.text("/ticket")?;
        Ok(format!("{path}/delete-status/{ticket}"))
    }

    /// The items that the demo engine has received and that match a query, the oldest first.
    pub fn received(&self, query: &str) -> anyhow::Result<Vec<Value>> {
        let call = Call::new("GET", format!("/received?{query}"));
        let body = self.call(&call)?.expect(200)?.body;
        let items = body.get("items").and_then(Value::as_array).cloned();
        items.context("the response of the demo engine has no items")
    }

    /// Waits until a deletion is completed, and fails if it ends otherwise or a signal arrives. `path` is that of its
    /// status, and `watch` is given each.
    pub fn wait_deleted(
        &self,
        path: &str,
        token: &str,
        limit: Duration,
        mut watch: impl FnMut(&Value),
    ) -> anyhow::Result<()> {
        let ended = interrupt::wait_until(limit, || {
            let body = self.get(path, token).ok()?.body;
            watch(&body);
            match body.get("status").and_then(Value::as_str) {
                Some("completed") => Some(Ok(())),
                Some("in-progress") => None,
                _ => Some(Err(anyhow!("the deletion ended with {body}"))),
            }
        });
        ended?.context("the deletion was not completed")?
    }

    /// Fails unless the response is 200, like the functions for other methods.
    pub fn get(&self, path: &str, token: &str) -> anyhow::Result<Response> {
        self.call(&Call::new("GET", path).token(token))?.expect(200)
    }

    pub fn post(&self, path: &str, token: &str, body: Value) -> anyhow::Result<Response> {
        let call = Call::new("POST", path).token(token).body(body);
        self.call(&call)?.expect(200)
    }

    pub fn put(&self, path: &str, token: &str, body: Value) -> anyhow::Result<Response> {
        let call = Call::new("PUT", path).token(token).body(body);
        self.call(&call)?.expect(200)
    }

    pub fn delete(&self, path: &str, token: &str) -> anyhow::Result<Response> {
        let call = Call::new("DELETE", path).token(token);
        self.call(&call)?.expect(200)
    }

    /// Sends a request, and repeats it while the server is unavailable or limits the rate. A repeated call may
    /// have taken effect before.
    pub fn call(&self, call: &Call<'_>) -> anyhow::Result<Response> {
        let name = format!("{} {}", call.method, transcript::path(&call.path));
        if self.is_printing {
            transcript::request(call.method, &call.path, call.token, call.body.as_ref());
        }
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let sent = Instant::now();
            let (failure, asked) = match self.once(call) {
                Ok((status, retry_after, body)) => match retry_pause(status, retry_after, &body) {
                    None => {
                        if self.is_printing {
                            transcript::response(status, sent.elapsed(), &body);
                        }
                        return Ok(Response {
                            status,
                            body,
                            call: name,
                        });
                    }
                    Some(asked) => (format!("returned {status}"), asked),
                },
                Err(error) => (format!("got no response: {error}"), Duration::ZERO),
            };
            pause = pause.max(asked);
            let elapsed = start.elapsed();
            let is_over = elapsed + pause > RETRY_LIMIT;
            ensure!(!is_over, "{name} {failure}, for {} s", elapsed.as_secs());
            transcript::pause(&name, &failure, pause);
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Sends a request once. Returns the status, the seconds of `Retry-After`, and the body.
    pub fn once(&self, call: &Call<'_>) -> Result<(u16, Option<u64>, Value), ureq::Error> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.base, call.path));
        if let Some(token) = call.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let mut response = match &call.body {
            Some(body) => {
                let request = request.header("content-type", "application/json");
                self.agent.run(request.body(body.to_string())?)?
            }
            None => self.agent.run(request.body(())?)?,
        };
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let text = response.body_mut().read_to_string()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok((status, retry_after, body))
    }
}

fn person(email: &str, password: &str, response: &Response) -> anyhow::Result<Person> {
    Ok(Person {
        email: email.to_owned(),
        password: password.to_owned(),
        id: response.text("/user/id")?.to_owned(),
        token: response.text("/token")?.to_owned(),
    })
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
