//! Tells the people-task service of changes of users on which the power over tasks depends: whether a user is active, an
//! administrator, and has an e-mail address that gives access to tasks. It stops the webhooks of a user who has lost that.
//!
//! - A trigger on `users` writes a row of `user_changes` in the transaction of the change, so no change is forgotten. There
//!   is one row for a user, however often the user changes.
//! - The deletion-worker sends the user's present state and deletes the row, unless it was written again meanwhile. A worker
//!   that is killed in between sends the same state again.
//! - Calls may arrive in another order than the changes were made. Each has the time of the latest change that it contains,
//!   which always grows for a user, and the people-task service ignores a call with an earlier one.

mod store;

use std::time::{Duration, Instant};

use database::{Connection, Database};
use futures_util::future::join_all;
use jobs::{growing_pause, jitter};
use telemetry::{Outage, RequestContext, SpanKind};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::store::UserState;
use crate::calls::CallError;
use crate::people_tasks::PeopleTasks;

/// Changes that a worker claims, and calls that it makes, at once.
const BATCH: i64 = 16;
/// The pause between two looks at the changes, and the longest in an outage.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How often the age of the oldest change is measured.
const MEASURED_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct UserChangeSender {
    database: Database,
    people_tasks: PeopleTasks,
    database_outage: Outage,
    call_outage: Outage,
}

impl UserChangeSender {
    pub(crate) fn new(database: Database, people_tasks: PeopleTasks) -> Self {
        Self {
            database,
            people_tasks,
            database_outage: Outage::new("changes of users cannot be read"),
            call_outage: Outage::new("the people-task service cannot be told of changes of users"),
        }
    }

    /// Tells of changes until it is cancelled. Calls under way then are finished.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut measured: Option<Instant> = None;
        while !shutdown.is_cancelled() {
            if measured.is_none_or(|at| at.elapsed() >= MEASURED_EVERY) {
                self.measure().await;
                measured = Some(Instant::now());
            }
            if self.tell_due().await {
                continue;
            }
            let (database, calls) = (self.database_outage.failures(), self.call_outage.failures());
            let pause = jitter(growing_pause(PAUSE, MAX_PAUSE, database.max(calls)));
            shutdown.run_until_cancelled(sleep(pause)).await;
        }
    }

    /// Tells of a batch of changes that are due, in an outage of one. Returns whether there may be more.
    async fn tell_due(&self) -> bool {
        let is_outage = self.call_outage.failures() > 0;
        let limit = if is_outage { 1 } else { BATCH };
        let claim = move |connection: &mut Connection| store::claim(connection, limit);
        let due = self.database.transaction(claim).await;
        self.database_outage.record(&due);
        let Ok(due) = due else { return false };
        let results = join_all(due.iter().map(|state| self.tell(state))).await;
        let told = results.iter().filter(|result| result.is_ok()).count();
        match results.into_iter().find_map(Result::err) {
            Some(error) if told == 0 => self.call_outage.fail(&error),
            _ if told > 0 => self.call_outage.end(),
            _ => {}
        }
        told > 0
    }

    async fn tell(&self, state: &UserState) -> Result<(), CallError> {
        let call = self.people_tasks.tell(state.user, state);
        let told = RequestContext::fresh().scope(SpanKind::Client, "user-change.tell", call);
        let told = told.await;
        let outcome = if told.is_ok() { "told" } else { "failed" };
        metrics::counter!("user_changes_total", "outcome" => outcome).increment(1);
        told?;
        let told = state.clone();
        let delete = move |connection: &mut Connection| store::delete(connection, &told);
        // The same state is told again later, which changes nothing.
        if let Err(error) = self.database.run(delete).await {
            self.database_outage.fail(&error);
        }
        Ok(())
    }

    async fn measure(&self) {
        match self.database.run(store::oldest_age).await {
            Ok(age) => metrics::gauge!("user_changes_oldest_seconds").set(age.as_secs_f64()),
            Err(error) => self.database_outage.fail(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_in_an_outage_and_end_with_it() {
        let outage = Outage::new("a test");
        let pause = || growing_pause(PAUSE, MAX_PAUSE, outage.failures());
        for expected in [1, 2, 4, 8, 16, 30, 30] {
            outage.fail(&"no connection");
            assert!(outage.failures() > 0);
            assert_eq!(pause().as_secs(), expected);
        }
        outage.end();
        assert!(outage.failures() == 0 && jitter(pause()) < Duration::from_secs(2));
    }
}
