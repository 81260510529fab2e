//! What happened, from the outside: what callers were told, and what receivers got.

use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::door::locked;

/// What became of a call that changes something. Callers make it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// `200`.
    Done,
    /// No answer in time, a broken connection, or a 502, 503 or 504 while something was wrong: it may have
    /// happened or not.
    Unknown,
    /// `409 task-already-resolved`, with the status that the task has.
    Resolved(String),
    /// Any other answer, in words: nobody here asks for what may be refused.
    Unexpected(String),
}

/// A webhook that somebody wanted to register.
#[derive(Debug, Clone)]
pub(crate) struct Hook {
    /// The last segment of its url, unique in the run.
    pub(crate) key: String,
    pub(crate) told: Told,
    /// Whether its receiver answers at once.
    pub(crate) fast: bool,
    /// Whether its receiver answers every attempt with 410.
    pub(crate) gone: bool,
}

/// A decision that somebody wanted to make.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    /// The status that it gives to the task.
    pub(crate) wish: &'static str,
    pub(crate) told: Told,
    /// When the caller had its answer.
    pub(crate) at: Instant,
}

/// A task whose creation was answered with `200`, and all that its callers did.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) hooks: Vec<Hook>,
    /// More than one when callers raced.
    pub(crate) decisions: Vec<Decision>,
}

/// How a receiver answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not at all, or not yet.
    None,
    /// `200`.
    Taken,
    /// Anything else; the next attempt is not wanted before this pause has passed.
    Failed(Duration),
}

/// One request at a receiver.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// The header `webhook-id`.
    pub(crate) webhook_id: String,
    /// `id` of the body.
    pub(crate) task: String,
    /// `status` of the body.
    pub(crate) status: String,
    /// What is wrong with its signatures.
    pub(crate) forged: Option<&'static str>,
    pub(crate) at: Instant,
    pub(crate) answer: Answer,
    /// When it was answered; `at` as long as it is not.
    pub(crate) answered: Instant,
}

impl Arrival {
    pub(crate) fn is_taken(&self) -> bool {
        self.answer == Answer::Taken
    }
}

/// Requests by the last segment of the webhook's url.
pub(crate) type Arrivals = HashMap<String, Vec<Arrival>>;

/// Everything of a run.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    tasks: Mutex<Vec<Task>>,
    /// Creations of tasks that were not answered with 200.
    uncreated: Mutex<Vec<Told>>,
    arrivals: Mutex<Arrivals>,
}

impl Journal {
    pub(crate) fn task(&self, task: Task) {
        locked(&self.tasks).push(task);
    }

    pub(crate) fn uncreated(&self, told: Told) {
        locked(&self.uncreated).push(told);
    }

    /// Writes a request down, not answered yet; answers how many came for this webhook before it.
    pub(crate) fn arrived(&self, key: &str, arrival: Arrival) -> usize {
        let mut arrivals = locked(&self.arrivals);
        let all = arrivals.entry(key.to_owned()).or_default();
        all.push(arrival);
        all.len() - 1
    }

    /// Notes how the receiver is about to answer the request of this number.
    pub(crate) fn answered(&self, key: &str, number: usize, answer: Answer) {
        let mut arrivals = locked(&self.arrivals);
        if let Some(arrival) = arrivals.get_mut(key).and_then(|all| all.get_mut(number)) {
            arrival.answer = answer;
            arrival.answered = Instant::now();
        }
    }

    pub(crate) fn is_delivered(&self, key: &str) -> bool {
        let arrivals = locked(&self.arrivals);
        arrivals
            .get(key)
            .is_some_and(|all| all.iter().any(Arrival::is_taken))
    }

    pub(crate) fn all_tasks(&self) -> Vec<Task> {
        locked(&self.tasks).clone()
    }

    pub(crate) fn all_uncreated(&self) -> Vec<Told> {
        locked(&self.uncreated).clone()
    }

    pub(crate) fn all_arrivals(&self) -> Arrivals {
        locked(&self.arrivals).clone()
    }
}
