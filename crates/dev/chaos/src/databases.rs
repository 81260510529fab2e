//! The Postgres servers: one, or a primary with a standby for which each commit waits. And when standbys were promoted and
//! stopped, and what callers noticed of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use local_stack::{Postgres, Servers, Stop, with_database};
use rig::lock;

use crate::history::{CallOutcome, Decision, Finding, Task, Violation};
use crate::schedule::FaultKind;

const DATABASE: &str = "countersign";

pub(crate) struct Databases {
    servers: Vec<Postgres>,
    /// The index of the primary.
    primary: AtomicUsize,
    /// Held during a fault: a killed server that becomes a standby may meet the next fault.
    fault_lock: Mutex<()>,
    pub(crate) failovers: Failovers,
}

impl Databases {
    pub(crate) fn new(servers: &Servers) -> Self {
        Self {
            servers: servers.databases().cloned().collect(),
            primary: AtomicUsize::new(0),
            fault_lock: Mutex::default(),
            failovers: Failovers::default(),
        }
    }

    pub(crate) fn admin_url(&self) -> anyhow::Result<String> {
        with_database(&self.primary()?.admin_url(), DATABASE)
    }

    /// Stops a server, and ends the fault after `pause`, unless that says that the run is interrupted.
    pub(crate) fn hit(&self, kind: FaultKind, pause: impl FnOnce() -> bool) -> anyhow::Result<()> {
        let _lock = lock(&self.fault_lock);
        match kind {
            FaultKind::PromoteStandby => self.promote_standby(pause),
            FaultKind::StopStandby => self.stop_standby(pause),
            _ => {
                let primary = self.primary()?;
                primary.stop(match kind {
                    FaultKind::KillDatabase => Stop::Kill,
                    _ => Stop::Graceful,
                })?;
                if pause() { primary.spawn() } else { Ok(()) }
            }
        }
    }

    /// Kills the primary, promotes the standby after `pause`, and makes the killed server its standby.
    fn promote_standby(&self, pause: impl FnOnce() -> bool) -> anyhow::Result<()> {
        let (old, new) = (self.primary()?, self.standby()?);
        let killed = Instant::now();
        lock(&self.failovers.killed).push(killed);
        old.stop(Stop::Kill)?;
        if !pause() {
            return Ok(());
        }
        let promote = Instant::now();
        new.promote()?;
        let promoted = Instant::now();
        self.primary.fetch_xor(1, Ordering::Relaxed);
        old.follow(new)?;
        new.set_synchronous(true)?;
        lock(&self.failovers.promotions).push(Promotion {
            killed,
            unnoticed: promote - killed,
            promoted,
            followed: Instant::now(),
        });
        Ok(())
    }

    fn stop_standby(&self, pause: impl FnOnce() -> bool) -> anyhow::Result<()> {
        let standby = self.standby()?;
        standby.stop(Stop::Kill)?;
        let stopped = Instant::now();
        if !pause() {
            return Ok(());
        }
        let started = Instant::now();
        standby.spawn()?;
        standby.wait_ready()?;
        self.primary()?.wait_streaming()?;
        let stops = &self.failovers.stops;
        lock(stops).push(StandbyStop { stopped, started });
        Ok(())
    }

    fn primary(&self) -> anyhow::Result<&Postgres> {
        let primary = self.servers.get(self.primary.load(Ordering::Relaxed));
        primary.context("there is no database server")
    }

    fn standby(&self) -> anyhow::Result<&Postgres> {
        let standby = self.servers.get(self.primary.load(Ordering::Relaxed) ^ 1);
        standby.context("there is no standby")
    }
}

/// How long after a promotion a process may still refuse new tokens: a second if it can read the feed, but
/// another fault may cut it off.
const UNSETTLED: Duration = Duration::from_secs(30);
/// A response may be under way when the standby ends.
const RESPONSE_TIME: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Failovers {
    /// When each primary that was to be replaced was killed.
    pub(crate) killed: Mutex<Vec<Instant>>,
    promotions: Mutex<Vec<Promotion>>,
    stops: Mutex<Vec<StandbyStop>>,
}

/// A promotion that is complete.
pub(crate) struct Promotion {
    pub(crate) killed: Instant,
    /// The time until the standby was told to become the primary.
    pub(crate) unnoticed: Duration,
    pub(crate) promoted: Instant,
    /// When the killed server was its standby.
    pub(crate) followed: Instant,
}

pub(crate) struct StandbyStop {
    pub(crate) stopped: Instant,
    pub(crate) started: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct FailoverResults {
    /// A row of the report for each promotion and stop.
    pub(crate) rows: Vec<(String, String)>,
    /// Earlier tokens that were tried with every process.
    pub(crate) tokens: usize,
    pub(crate) findings: Vec<Finding>,
}

impl Failovers {
    /// Whether a token that was requested at this moment may be refused: it was issued before a promotion, or so
    /// soon after it that a process may not have noticed the promotion.
    pub(crate) fn may_refuse(&self, requested: Instant) -> bool {
        let promoted = lock(&self.promotions).last().map(|one| one.promoted);
        let unfinished = lock(&self.killed).len() > lock(&self.promotions).len();
        unfinished || promoted.is_some_and(|promoted| requested < promoted + UNSETTLED)
    }

    /// Describes each promotion and stop, and checks that no decision succeeded while the standby was stopped.
    pub(crate) fn check(&self, tasks: &[Task]) -> FailoverResults {
        let decisions: Vec<_> = tasks.iter().flat_map(|task| &task.decisions).collect();
        let mut results = FailoverResults::default();
        for (number, promotion) in (1..).zip(lock(&self.promotions).iter()) {
            let name = format!("promotion {number}");
            results.rows.push((name, promotion.describe(&decisions)));
        }
        for (number, stop) in (1..).zip(lock(&self.stops).iter()) {
            let name = format!("standby stopped {number}");
            results.rows.push((name, stop.describe(&decisions)));
            for task in tasks {
                if task.decisions.iter().any(|one| stop.is_unreplicated(one)) {
                    let what = "was decided with 200 while the standby was stopped";
                    let finding = Finding::new(Violation::Unreplicated, &task.id, what);
                    results.findings.push(finding);
                }
            }
        }
        results
    }
}

impl Promotion {
    fn describe(&self, decisions: &[&Decision]) -> String {
        let since = |at: Instant| (at - self.killed).as_secs_f64();
        let first = describe_first(decisions, self.promoted, |at| {
            format!("first decision after {:.1} s", since(at))
        });
        format!(
            "ordered {:.1} s after the kill, primary after {:.1} s, {first}, standby again after {:.1} s",
            self.unnoticed.as_secs_f64(),
            since(self.promoted),
            since(self.followed)
        )
    }
}

impl StandbyStop {
    fn is_unreplicated(&self, decision: &Decision) -> bool {
        let begin = self.stopped + RESPONSE_TIME;
        decision.outcome == CallOutcome::Succeeded && (begin..self.started).contains(&decision.at)
    }

    fn describe(&self, decisions: &[&Decision]) -> String {
        let unknown = |one: &&&Decision| {
            one.outcome == CallOutcome::Unknown && (self.stopped..self.started).contains(&one.at)
        };
        let succeeded = decisions.iter().filter(|one| self.is_unreplicated(one));
        let first = describe_first(decisions, self.started, |at| {
            let after = (at - self.started).as_secs_f64();
            format!("next decision {after:.1} s after")
        });
        format!(
            "for {:.1} s, {} decisions with 200 (must be 0), {} unknown, {first}",
            (self.started - self.stopped).as_secs_f64(),
            succeeded.count(),
            decisions.iter().filter(unknown).count()
        )
    }
}

fn describe_first(
    decisions: &[&Decision],
    after: Instant,
    describe: impl FnOnce(Instant) -> String,
) -> String {
    let succeeded = decisions
        .iter()
        .filter(|one| one.outcome == CallOutcome::Succeeded);
    let first = succeeded.map(|one| one.at).filter(|at| *at > after).min();
    first.map_or_else(|| "no decision since".to_owned(), describe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Creation;

    fn task(at: Instant) -> Task {
        Task {
            due: None,
            id: "t1".into(),
            creation: Creation::default(),
            hooks: Vec::new(),
            decisions: vec![Decision {
                requested: "approved",
                outcome: CallOutcome::Succeeded,
                at,
            }],
        }
    }

    #[test]
    fn only_a_promotion_explains_a_refused_token() {
        let failovers = Failovers::default();
        let now = Instant::now();
        assert!(!failovers.may_refuse(now));
        lock(&failovers.killed).push(now);
        assert!(failovers.may_refuse(now - Duration::from_secs(60)));
        lock(&failovers.promotions).push(Promotion {
            killed: now,
            unnoticed: Duration::ZERO,
            promoted: now,
            followed: now,
        });
        assert!(failovers.may_refuse(now - Duration::from_secs(60)));
        assert!(!failovers.may_refuse(now + UNSETTLED));
    }

    #[test]
    fn a_decision_while_the_standby_is_stopped_is_a_violation() {
        let failovers = Failovers::default();
        let stopped = Instant::now();
        let started = stopped + Duration::from_secs(5);
        lock(&failovers.stops).push(StandbyStop { stopped, started });
        let count = |at| failovers.check(&[task(at)]).findings.len();
        assert_eq!(count(stopped + RESPONSE_TIME / 2), 0);
        assert_eq!(count(stopped + RESPONSE_TIME), 1);
        assert_eq!(count(started + RESPONSE_TIME), 0);
    }
}
