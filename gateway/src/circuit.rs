//! What keeps callers from waiting for a service that is dead.
//!
//! After so many requests in a row that got no answer, a service is left alone for a pause: requests for it
//! are answered `503` at once. Then one request goes through to try it, and its outcome decides. Any answer
//! of the service, an error's included, shows that it lives.
//!
//! Each replica of the gateway finds out for itself.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_kit::Problem;

use crate::table::Service;

/// When a circuit opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct CircuitSettings {
    /// Requests in a row without an answer that open it.
    pub failures: u32,
    /// How long it stays open before a request tries the service.
    pub pause: Duration,
}

/// One circuit for each service.
#[derive(Debug)]
pub(crate) struct Circuits {
    user: Circuit,
    people_task: Circuit,
}

impl Circuits {
    pub(crate) fn new(settings: CircuitSettings) -> Self {
        Self {
            user: Circuit::new("user-service", settings),
            people_task: Circuit::new("people-task-service", settings),
        }
    }

    pub(crate) fn of(&self, service: Service) -> &Circuit {
        match service {
            Service::User => &self.user,
            Service::PeopleTask => &self.people_task,
        }
    }
}

/// The circuit of one service.
#[derive(Debug)]
pub(crate) struct Circuit {
    service: &'static str,
    settings: CircuitSettings,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Requests go through; so many in a row had no answer.
    Closed { failures: u32 },
    /// Requests are refused until then.
    Open { until: Instant },
    /// One request tries the service; others are refused until its outcome is known, or until then: its
    /// caller may be slow.
    Trying { until: Instant },
}

/// A request that goes through. If it is dropped without an outcome, because its caller went away, the
/// next one tries.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    circuit: &'a Circuit,
    tries: bool,
}

impl Circuit {
    fn new(service: &'static str, settings: CircuitSettings) -> Self {
        metrics::gauge!("gateway_circuit_open", "service" => service).set(0.0);
        Self {
            service,
            settings,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    /// Lets a request through.
    ///
    /// # Errors
    /// `503 upstream-unavailable` with `Retry-After` while the service is left alone.
    pub(crate) fn admit(&self) -> Result<Admission<'_>, Problem> {
        self.admit_at(Instant::now()).map_err(|wait| {
            metrics::counter!("gateway_requests_refused_by_circuit_total", "service" => self.service)
                .increment(1);
            let detail = "The service behind the gateway does not answer. Nothing happened; try again soon.";
            Problem::unavailable_for("upstream-unavailable", detail, wait)
        })
    }

    fn admit_at(&self, now: Instant) -> Result<Admission<'_>, Duration> {
        let mut state = self.lock();
        let tries = match *state {
            State::Closed { .. } => false,
            State::Open { until } | State::Trying { until } if until > now => {
                return Err(until - now);
            }
            State::Open { .. } | State::Trying { .. } => {
                let until = now + self.settings.pause;
                *state = State::Trying { until };
                true
            }
        };
        Ok(Admission {
            circuit: self,
            tries,
        })
    }

    fn close(&self) {
        let mut state = self.lock();
        let was_closed = matches!(*state, State::Closed { .. });
        *state = State::Closed { failures: 0 };
        drop(state);
        if !was_closed {
            metrics::gauge!("gateway_circuit_open", "service" => self.service).set(0.0);
            tracing::info!(service = self.service, "a service answers again");
        }
    }

    fn note_failure(&self, tries: bool, now: Instant) {
        let mut state = self.lock();
        let until = now + self.settings.pause;
        match *state {
            State::Closed { failures } if failures + 1 < self.settings.failures => {
                *state = State::Closed {
                    failures: failures + 1,
                };
            }
            State::Closed { .. } => {
                *state = State::Open { until };
                drop(state);
                metrics::gauge!("gateway_circuit_open", "service" => self.service).set(1.0);
                tracing::warn!(
                    service = self.service,
                    "a service does not answer: it is left alone"
                );
            }
            State::Trying { .. } if tries => *state = State::Open { until },
            // What was sent before the circuit opened says nothing new.
            State::Trying { .. } | State::Open { .. } => {}
        }
    }

    fn give_up(&self, now: Instant) {
        let mut state = self.lock();
        if matches!(*state, State::Trying { .. }) {
            *state = State::Open { until: now };
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission<'_> {
    /// The service gave an answer, whatever it was.
    pub(crate) fn answered(mut self) {
        self.tries = false;
        self.circuit.close();
    }

    /// The service could not be reached, or gave no answer.
    pub(crate) fn failed(self) {
        self.failed_at(Instant::now());
    }

    fn failed_at(mut self, now: Instant) {
        self.circuit.note_failure(self.tries, now);
        self.tries = false;
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if self.tries {
            self.circuit.give_up(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use actix_web::ResponseError as _;

    use super::{Circuit, CircuitSettings};

    const PAUSE: Duration = Duration::from_secs(60);

    fn circuit() -> Circuit {
        let settings = CircuitSettings {
            failures: 3,
            pause: PAUSE,
        };
        Circuit::new("user-service", settings)
    }

    fn fail(circuit: &Circuit, times: usize, now: Instant) {
        for _ in 0..times {
            circuit.admit_at(now).unwrap().failed_at(now);
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_not_after_failures_with_an_answer_between() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 2, now);
        circuit.admit().unwrap().answered();
        fail(&circuit, 2, now);
        assert!(circuit.admit().is_ok());
        fail(&circuit, 1, now);
        let problem = circuit.admit().unwrap_err();
        assert_eq!(
            (problem.status_code().as_u16(), problem.code()),
            (503, "upstream-unavailable")
        );
        let response = problem.error_response();
        assert_eq!(response.headers().get("retry-after").unwrap(), "60");
    }

    #[test]
    fn after_the_pause_one_request_tries_and_its_outcome_decides() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        assert_eq!(circuit.admit_at(now).unwrap_err(), PAUSE);
        let later = now + PAUSE;
        let trying = circuit.admit_at(later).unwrap();
        assert!(circuit.admit_at(later).is_err(), "only one tries");
        trying.failed_at(later);
        assert_eq!(circuit.admit_at(later).unwrap_err(), PAUSE);
        circuit.admit_at(later + PAUSE).unwrap().answered();
        assert!(circuit.admit_at(later + PAUSE).is_ok());
    }

    #[test]
    fn a_caller_that_goes_away_leaves_the_trying_to_the_next_one() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        let later = now + PAUSE;
        drop(circuit.admit_at(later).unwrap());
        let trying = circuit.admit_at(later).unwrap();
        assert!(circuit.admit_at(later).is_err());
        trying.answered();
    }

    #[test]
    fn a_trying_request_that_takes_long_does_not_keep_others_from_trying() {
        let (circuit, now) = (circuit(), Instant::now());
        fail(&circuit, 3, now);
        let _slow = circuit.admit_at(now + PAUSE).unwrap();
        circuit.admit_at(now + 2 * PAUSE).unwrap().answered();
        assert!(circuit.admit_at(now + 2 * PAUSE).is_ok());
    }

    #[test]
    fn requests_that_were_sent_before_it_opened_do_not_prolong_the_pause() {
        let (circuit, now) = (circuit(), Instant::now());
        let early = circuit.admit_at(now).unwrap();
        fail(&circuit, 3, now);
        let later = now + PAUSE;
        early.failed_at(later);
        assert!(circuit.admit_at(later).is_ok());
    }
}
