//! Workers own hosts, so that one worker knows everything that is under way to a host, and no attempt needs a claim:
//! [how and why](../../../../../docs/decisions/workers-own-hosts.md).

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use database::{Connection, Database, Error};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::ownership_store::{self as store, Row, Workers};
use crate::deliveries::worker::shards::{SHARDS, Shards};

/// How often a worker says that it is alive.
const BEAT: Duration = Duration::from_millis(400);

/// This worker, as it knows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Its number. A worker that was taken for dead gets another one.
    pub(super) id: i32,
    pub(super) shards: Shards,
    /// How many of them others should have.
    pub(super) surplus: u32,
    /// Until then no other worker takes it for dead.
    pub(super) alive_until: Instant,
    /// When it last took shards whose owner had died. That owner may have died of an older delivery.
    pub(super) took_over: Option<DateTime<Utc>>,
}

/// What the dispatcher tells the ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wishes {
    /// The shards that the dispatcher knows as its own.
    pub(super) adopted: Shards,
    /// Those of them that it has done with, until it knows that they are given up.
    pub(super) given_up: Shards,
    /// It lets the others have all shards, and takes no more.
    pub(super) is_stopping: bool,
}

impl Wishes {
    /// The dispatcher was told that these shards are its own, and that it has no others.
    pub(super) fn adopt(&mut self, owned: Shards) {
        self.adopted = owned;
        self.given_up.0 &= owned.0;
    }
}

/// Keeps the row of this worker, and its shards.
pub(super) struct Ownership {
    database: Database,
    /// After this long without a beat a worker is taken for dead.
    silence: Duration,
    wishes: watch::Receiver<Wishes>,
    member: watch::Sender<Option<Member>>,
    judgement: Judgement,
    worker: Option<Row>,
    took_over: Option<DateTime<Utc>>,
}

impl Ownership {
    /// A worker that has not joined yet, what it will know of itself, and where the dispatcher tells it what it
    /// wishes. Its connections must serve nothing else, so that no beat waits for one.
    pub(super) fn new(
        database: Database,
        silence: Duration,
    ) -> (Self, watch::Receiver<Option<Member>>, watch::Sender<Wishes>) {
        let (member, own) = watch::channel(None);
        let (wishing, wishes) = watch::channel(Wishes::default());
        let ownership = Self {
            database,
            silence,
            wishes,
            member,
            judgement: Judgement::new(silence),
            worker: None,
            took_over: None,
        };
        (ownership, own, wishing)
    }

    /// Keeps this worker alive until it is cancelled, which must be after it has ended everything. Then it leaves, by a
    /// connection of `database`.
    pub(super) async fn run(mut self, shutdown: CancellationToken, database: Database) {
        while !shutdown.is_cancelled() {
            let started = Instant::now();
            if let Err(error) = self.beat(started).await {
                self.judgement.failed();
                error.warn("the worker could not say that it is alive");
            }
            tokio::select! {
                () = tokio::time::sleep(BEAT.saturating_sub(started.elapsed())) => {}
                Ok(()) = self.wishes.changed() => {}
                () = shutdown.cancelled() => {}
            }
        }
        let Some(worker) = self.worker else { return };
        let leave = move |connection: &mut Connection| store::leave(connection, worker.id);
        if let Err(error) = database.transaction(leave).await {
            tracing::warn!(error = ?error, "the worker could not leave; another one will delete it");
        }
    }

    async fn beat(&mut self, started: Instant) -> Result<(), Error> {
        let wishes = *self.wishes.borrow_and_update();
        let row = self.join().await?;
        let id = row.id;
        self.give_up(id, wishes.given_up).await?;
        let (silence, is_stopping) = (self.silence, wishes.is_stopping);
        let beat =
            move |connection: &mut Connection| store::beat(connection, &row, is_stopping, silence);
        let workers = self.database.run(beat).await?;
        if !workers.is_member {
            tracing::warn!(
                worker.id = id,
                "another worker took this one for dead; it joins again"
            );
            self.worker = None;
            self.member.send_replace(None);
            return Ok(());
        }
        if self.judgement.succeeded(started, workers.clock) {
            self.delete_silent(&workers).await?;
        }
        let share = if is_stopping { 0 } else { share(&workers) };
        let mut shards: Shards = workers.owned.iter().copied().collect();
        let knows_losses = wishes.adopted.without(shards) == Shards::default();
        if workers.claiming > 0 {
            // Workers that claim single deliveries would claim those that this one sends.
            shards = Shards::default();
        } else if knows_losses && shards.number() < share {
            // The dispatcher serves a shard that was given up and taken again only if it knows that it was gone.
            shards.0 |= self.take(id, share - shards.number()).await?.0;
        }
        self.member.send_replace(Some(Member {
            id,
            shards,
            surplus: shards.number().saturating_sub(share),
            alive_until: started + silence / 4 * 3,
            took_over: self.took_over,
        }));
        Ok(())
    }

    /// The row of this worker, which joins if it has none.
    async fn join(&mut self) -> Result<Row, Error> {
        if let Some(row) = &self.worker {
            return Ok(row.clone());
        }
        let row = self.database.transaction(store::join).await?;
        self.worker = Some(row.clone());
        Ok(row)
    }

    async fn give_up(&self, worker: i32, shards: Shards) -> Result<(), Error> {
        if shards == Shards::default() {
            return Ok(());
        }
        let give_up =
            move |connection: &mut Connection| store::give_up(connection, worker, &shards.ids());
        self.database.run(give_up).await.map(drop)
    }

    async fn delete_silent(&self, workers: &Workers) -> Result<(), Error> {
        if workers.silent.is_empty() {
            return Ok(());
        }
        let (silent, silence) = (workers.silent.clone(), self.silence);
        let delete =
            move |connection: &mut Connection| store::delete_silent(connection, &silent, silence);
        let workers = self.database.run(delete).await?;
        if workers > 0 {
            tracing::warn!(workers, "took silent workers for dead");
        }
        Ok(())
    }

    async fn take(&mut self, worker: i32, number: u32) -> Result<Shards, Error> {
        let take =
            move |connection: &mut Connection| store::take(connection, worker, i64::from(number));
        let taken = self.database.transaction(take).await?;
        let orphaned = taken.iter().filter(|shard| shard.orphaned);
        let took_over = orphaned.clone().map(|shard| shard.at).max();
        self.took_over = took_over.max(self.took_over);
        let orphaned = orphaned.count();
        if !taken.is_empty() {
            tracing::info!(shards = taken.len(), orphaned, "took shards of hosts");
        }
        metrics::counter!("webhook_shards_orphaned_total").increment(orphaned as u64);
        Ok(taken.iter().map(|shard| shard.id).collect())
    }
}

/// How many shards a worker should have. The oldest workers have the rest of the division.
fn share(workers: &Workers) -> u32 {
    let count = u32::try_from(workers.workers).unwrap_or(u32::MAX).max(1);
    let older = u32::try_from(workers.older).unwrap_or(u32::MAX);
    SHARDS / count + u32::from(older < SHARDS % count)
}

/// Whether this worker may take another one for dead.
///
/// A worker that was cut off from the database itself cannot tell a dead worker from one that was cut off with it. So it
/// first must have seen, without interruption, that the others had the time to beat again.
struct Judgement {
    silence: Duration,
    /// Since when every beat has succeeded.
    since: Option<Instant>,
    /// When the last beat succeeded, by this process and by the database.
    last_success: Option<(Instant, DateTime<Utc>)>,
    /// How long they must have.
    required: Duration,
}

impl Judgement {
    fn new(silence: Duration) -> Self {
        Self {
            silence,
            since: None,
            last_success: None,
            required: silence,
        }
    }

    /// A beat failed. Others may need longer than this worker to connect again.
    fn failed(&mut self) {
        self.since = None;
        self.required = self.silence * 2;
    }

    /// A beat that started at this time succeeded. Returns whether silent workers are dead.
    fn succeeded(&mut self, at: Instant, clock: DateTime<Utc>) -> bool {
        if let Some((last, last_clock)) = self.last_success {
            let (elapsed, by_clock) = (at - last, (clock - last_clock).to_std());
            let limit = self.silence / 2;
            // This process was paused, and perhaps the machine with all workers. Or the database's clock was set forward,
            // by which the last beats of all are old.
            if elapsed > limit || by_clock.is_ok_and(|by_clock| by_clock > elapsed + limit) {
                self.failed();
            }
        }
        self.last_success = Some((at, clock));
        at - *self.since.get_or_insert(at) >= self.required
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use chrono::{DateTime, Utc};
    use database::{Database, DatabaseSettings};
    use diesel::connection::SimpleConnection as _;
    use testkit::TestDatabase;
    use tokio::sync::watch;

    use super::{Judgement, Member, Ownership, Shards, Wishes, Workers, share};

    fn ownership(
        test: &TestDatabase,
    ) -> (
        Ownership,
        watch::Receiver<Option<Member>>,
        watch::Sender<Wishes>,
    ) {
        let database = Database::connect(&DatabaseSettings {
            url: test.people_task_url(),
            owner_url: None,
            pool_size: 1,
            timeout: Duration::from_secs(5),
        });
        Ownership::new(database, Duration::from_mins(1))
    }

    #[tokio::test]
    async fn a_worker_joins_again_if_another_one_has_its_number() {
        let test = TestDatabase::people_task(crate::MIGRATIONS);
        let (mut ownership, member, _wishes) = ownership(&test);
        ownership.beat(Instant::now()).await.unwrap();
        let number = member.borrow().unwrap().id;
        // As when a dump is restored, and another worker joins first.
        let restore = format!(
            "SET search_path = people_task; DELETE FROM delivery_workers;
            INSERT INTO delivery_workers (id, protocol) OVERRIDING SYSTEM VALUE VALUES ({number}, 2)"
        );
        test.admin().batch_execute(&restore).unwrap();
        ownership.beat(Instant::now()).await.unwrap();
        assert_eq!(*member.borrow(), None);
        ownership.beat(Instant::now()).await.unwrap();
        assert_ne!(member.borrow().unwrap().id, number);
    }

    #[tokio::test]
    async fn shards_that_were_given_up_are_gone_before_they_are_taken_again() {
        let test = TestDatabase::people_task(crate::MIGRATIONS);
        let (mut ownership, member, wishes) = ownership(&test);
        let beat = async |ownership: &mut Ownership| {
            ownership.beat(Instant::now()).await.unwrap();
            let shards = member.borrow().unwrap().shards;
            wishes.send_modify(|wishes| wishes.adopt(shards));
            shards
        };
        let all = Shards(u64::MAX);
        assert_eq!(beat(&mut ownership).await, all);
        let some = Shards(0b1010);
        wishes.send_modify(|wishes| wishes.given_up = some);
        // Before the dispatcher knows of it.
        ownership.beat(Instant::now()).await.unwrap();
        assert_eq!(beat(&mut ownership).await, all.without(some));
        assert_eq!(beat(&mut ownership).await, all);
        // As when the rest of a beat fails.
        wishes.send_modify(|wishes| wishes.given_up = some);
        let id = ownership.join().await.unwrap().id;
        ownership.give_up(id, some).await.unwrap();
        assert_eq!(beat(&mut ownership).await, all.without(some));
        assert_eq!(beat(&mut ownership).await, all);
    }

    #[test]
    fn the_shares_of_all_workers_are_all_shards() {
        for (workers, expected) in [(1, vec![64]), (3, vec![22, 21, 21])] {
            let shares = (0..workers).map(|older| {
                share(&Workers {
                    is_member: true,
                    workers,
                    older,
                    claiming: 0,
                    silent: Vec::new(),
                    owned: Vec::new(),
                    clock: DateTime::UNIX_EPOCH,
                })
            });
            assert_eq!(shares.collect::<Vec<_>>(), expected);
        }
    }

    const SILENCE: Duration = Duration::from_secs(2);
    const BEAT: Duration = Duration::from_millis(500);

    /// The time by the process and by the database.
    type Now = (Instant, DateTime<Utc>);

    fn start() -> Now {
        (Instant::now(), DateTime::UNIX_EPOCH)
    }

    fn pass(now: &mut Now, time: Duration) {
        now.0 += time;
        now.1 += time;
    }

    /// Beats until the worker may judge, and returns how long this took.
    fn time_to_judge(judgement: &mut Judgement, now: &mut Now) -> Duration {
        let start = now.0;
        while !judgement.succeeded(now.0, now.1) {
            pass(now, BEAT);
        }
        now.0 - start
    }

    #[test]
    fn a_worker_judges_once_it_has_watched_the_others_for_as_long_as_the_silence() {
        let (mut judgement, mut now) = (Judgement::new(SILENCE), start());
        assert_eq!(time_to_judge(&mut judgement, &mut now), SILENCE);
        pass(&mut now, BEAT);
        assert_eq!(time_to_judge(&mut judgement, &mut now), Duration::ZERO);
    }

    #[test]
    fn after_an_outage_a_pause_or_a_step_of_the_clock_it_watches_them_twice_as_long() {
        let (mut judgement, mut now) = (Judgement::new(SILENCE), start());
        time_to_judge(&mut judgement, &mut now);
        judgement.failed();
        pass(&mut now, BEAT);
        assert_eq!(time_to_judge(&mut judgement, &mut now), 2 * SILENCE);
        pass(&mut now, 3 * BEAT);
        assert_eq!(time_to_judge(&mut judgement, &mut now), 2 * SILENCE);
        pass(&mut now, BEAT);
        now.1 += Duration::from_hours(1);
        assert_eq!(time_to_judge(&mut judgement, &mut now), 2 * SILENCE);
        pass(&mut now, BEAT);
        assert_eq!(time_to_judge(&mut judgement, &mut now), Duration::ZERO);
    }
}
