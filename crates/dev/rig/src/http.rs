//! The HTTP client of these commands.

use std::time::Duration;

use ureq::Agent;

/// Returns a client without proxies and redirects. An error status is not an error of the call.
pub fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .build()
        .into()
}

/// Returns whether `GET <base>/readyz` returns 200.
pub fn is_ready(agent: &Agent, base: &str) -> bool {
    agent
        .get(format!("{base}/readyz"))
        .call()
        .is_ok_and(|response| response.status() == 200)
}

/// Returns the body of `/readyz`, or the error, for a message.
pub fn readiness(agent: &Agent, base: &str) -> String {
    match agent.get(format!("{base}/readyz")).call() {
        Ok(mut response) => response
            .body_mut()
            .read_to_string()
            .unwrap_or_else(|error| error.to_string()),
        Err(error) => error.to_string(),
    }
}
