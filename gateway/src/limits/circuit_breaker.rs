//! Keeps callers from waiting for a dead service.
//!
//! Consecutive requests without a response open the circuit of a service: for a while, requests to it get
//! `503` at once. Then the circuit is half open: one trial request goes through, and its outcome decides.
//! Any response, errors included, shows that the service is up and closes the circuit.
//!
//! Each replica of the gateway has its own circuits.

use std::time::{Duration, Instant};

use http_kit::Problem;
use parking_lot::Mutex;
use telemetry::Outage;

use crate::settings::CircuitSettings;

#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    service: &'static str,
    settings: CircuitSettings,
    state: Mutex<State>,
    /// Requests without a response, until the next response.
    pub(crate) outage: Outage,
}

#[derive(Debug, Default)]
struct State {
    /// How many of the last requests had no response, in a row, before the circuit opened.
    failures: u32,
    /// Until when requests are refused; `None` while the circuit is closed. While a trial request is on its way, others are
    /// refused no longer than the pause, because its caller may be slow.
    until: Option<Instant>,
}

impl State {
    fn wait(&self, now: Instant) -> Option<Duration> {
        self.until
            .filter(|until| *until > now)
            .map(|until| until - now)
    }
}

/// A request that goes through. If a trial request is dropped without an outcome, because its caller
/// disconnected, the next request becomes the trial.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    circuit: &'a CircuitBreaker,
    /// For a trial, until when others are refused. It is over when the state says something else.
    trial: Option<Instant>,
}

impl CircuitBreaker {
    pub(crate) fn new(service: &'static str, settings: CircuitSettings) -> Self {
        metrics::gauge!("gateway_circuit_open", "service" => service).set(0.0);
        Self {
            service,
            settings,
            state: Mutex::default(),
            outage: Outage::new("a service does not respond"),
        }
    }

    /// Whether a request could go through now. It does not become the trial.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let wait = self.state.lock().wait(Instant::now());
        wait.map_or(Ok(()), |wait| Err(self.refusal(wait)))
    }

    /// Lets a request through, or refuses it while the circuit is open.
    pub(crate) fn acquire(&self) -> Result<Permit<'_>, Problem> {
        let acquired = self.acquire_at(Instant::now());
        acquired.map_err(|wait| self.refusal(wait))
    }

    fn refusal(&self, wait: Duration) -> Problem {
        metrics::counter!("gateway_requests_refused_by_circuit_total", "service" => self.service)
            .increment(1);
        let detail =
            "The service behind the gateway does not respond. Nothing was changed; try again soon.";
        Problem::unavailable_for("upstream-unavailable", detail, wait)
    }

    fn acquire_at(&self, now: Instant) -> Result<Permit<'_>, Duration> {
        let mut state = self.state.lock();
        if let Some(wait) = state.wait(now) {
            return Err(wait);
        }
        state.until = state.until.map(|_| now + self.settings.pause);
        Ok(Permit {
            circuit: self,
            trial: state.until,
        })
    }
}

impl Permit<'_> {
    /// The service responded, perhaps with an error.
    pub(crate) fn record_response(mut self) {
        self.trial = None;
        self.circuit.outage.end();
        let CircuitBreaker { service, state, .. } = self.circuit;
        let mut state = state.lock();
        if std::mem::take(&mut *state).until.is_some() {
            metrics::gauge!("gateway_circuit_open", "service" => *service).set(0.0);
            drop(state);
            tracing::info!(service, "circuit closed");
        }
    }

    /// The service could not be reached, or did not respond.
    pub(crate) fn record_failure(self) {
        self.record_failure_at(Instant::now());
    }

    fn record_failure_at(mut self, now: Instant) {
        let trial = self.trial.take();
        let (service, settings) = (self.circuit.service, self.circuit.settings);
        let mut state = self.circuit.state.lock();
        let until = Some(now + settings.pause);
        if state.until.is_some() {
            // Requests that were sent before the circuit opened say nothing new.
            if state.until == trial {
                state.until = until;
            }
            return;
        }
        state.failures += 1;
        if state.failures >= settings.failures {
            state.until = until;
            metrics::gauge!("gateway_circuit_open", "service" => service).set(1.0);
            drop(state);
            tracing::warn!(service, "circuit opened");
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.trial.is_some() {
            let mut state = self.circuit.state.lock();
            if state.until == self.trial {
                state.until = Some(Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use actix_web::ResponseError as _;

    use super::CircuitBreaker;
    use crate::settings::CircuitSettings;

    const PAUSE: Duration = Duration::from_secs(60);

    fn circuit() -> CircuitBreaker {
        let settings = CircuitSettings {
            failures: 3,
            pause: PAUSE,
        };
        CircuitBreaker::new("user-service", settings)
    }

    fn fail(circuit: &CircuitBreaker, times: usize, now: Instant) {
        for _ in 0..times {
            circuit.acquire_at(now).unwrap().record_failure_at(now);
        }
    }

    #[test]
    fn only_consecutive_failures_open_the_circuit() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 2, now);
        circuit.acquire().unwrap().record_response();
        fail(&circuit, 2, now);
        assert!(circuit.check().is_ok() && circuit.acquire().is_ok());
        fail(&circuit, 1, now);
        assert!(circuit.check().is_err());
        let problem = circuit.acquire().unwrap_err();
        assert_eq!(
            (problem.status_code().as_u16(), problem.code()),
            (503, "upstream-unavailable")
        );
        let response = problem.error_response();
        assert_eq!(response.headers().get("retry-after").unwrap(), "60");
    }

    #[test]
    fn after_the_pause_the_outcome_of_one_trial_request_decides() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        assert_eq!(circuit.acquire_at(now).unwrap_err(), PAUSE);
        let later = now + PAUSE;
        let trial = circuit.acquire_at(later).unwrap();
        assert!(
            circuit.acquire_at(later).is_err(),
            "only one trial at a time"
        );
        trial.record_failure_at(later);
        assert_eq!(circuit.acquire_at(later).unwrap_err(), PAUSE);
        circuit.acquire_at(later + PAUSE).unwrap().record_response();
        assert!(circuit.acquire_at(later + PAUSE).is_ok());
    }

    #[test]
    fn when_the_caller_of_a_trial_disconnects_the_next_request_is_the_trial() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        let later = now + PAUSE;
        drop(circuit.acquire_at(later).unwrap());
        let trial = circuit.acquire_at(later).unwrap();
        assert!(circuit.acquire_at(later).is_err());
        trial.record_response();
    }

    #[test]
    fn a_slow_trial_does_not_block_the_next_one() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        let _slow = circuit.acquire_at(now + PAUSE).unwrap();
        circuit
            .acquire_at(now + 2 * PAUSE)
            .unwrap()
            .record_response();
        assert!(circuit.acquire_at(now + 2 * PAUSE).is_ok());
    }

    #[test]
    fn a_slow_trial_whose_caller_disconnects_lets_no_request_go_beside_the_next_one() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        let slow = circuit.acquire_at(now + PAUSE).unwrap();
        let later = now + 2 * PAUSE;
        let _trial = circuit.acquire_at(later).unwrap();
        drop(slow);
        assert_eq!(circuit.acquire_at(later).unwrap_err(), PAUSE);
    }

    #[test]
    fn failures_of_earlier_requests_do_not_prolong_the_pause() {
        let (circuit, now) = (circuit(), Instant::now());
        let early = circuit.acquire_at(now).unwrap();
        fail(&circuit, 3, now);
        let later = now + PAUSE;
        early.record_failure_at(later);
        assert!(circuit.acquire_at(later).is_ok());
    }
}
