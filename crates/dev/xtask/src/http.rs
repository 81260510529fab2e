//! The HTTP client of these commands.

use std::time::Duration;

use ureq::Agent;

/// No proxy (everything is local), no redirects, and every status is an answer rather than an error.
pub fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .build()
        .into()
}

/// Whether `GET <base>/readyz` answers 200.
pub fn is_ready(agent: &Agent, base: &str) -> bool {
    agent
        .get(format!("{base}/readyz"))
        .call()
        .is_ok_and(|answer| answer.status() == 200)
}

/// What `/readyz` says, for a person to read.
pub fn readiness(agent: &Agent, base: &str) -> String {
    match agent.get(format!("{base}/readyz")).call() {
        Ok(mut answer) => answer
            .body_mut()
            .read_to_string()
            .unwrap_or_else(|error| error.to_string()),
        Err(error) => error.to_string(),
    }
}
