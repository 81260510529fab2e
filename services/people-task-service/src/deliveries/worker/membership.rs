//! The workers know each other by rows of `delivery_workers`. Each says several times a second that it is alive, and
//! one that notices another one's silence has that one's claims [released](super::lost_claims).
//!
//! The workers divide the places of each host among themselves: a worker has at most its places of concurrent requests
//! to any host. It gives places up before another one takes them, so their sum never exceeds the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use database::{Connection, Database, Error};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::deliveries::worker::judgement::Judgement;
use crate::deliveries::worker::membership_store::{self as store, Workers};

/// How often a worker says that it is alive.
const BEAT: Duration = Duration::from_millis(400);

/// This worker, as it knows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    /// Its number. A worker that was taken for dead gets another one.
    pub(super) id: i32,
    /// How many concurrent requests to one host it may have.
    pub(super) places: u32,
    /// Until then no other worker takes it for dead.
    pub(super) alive_until: Instant,
    /// How often the database was seen to have started again. A crash may have undone results that were recorded, so the
    /// worker may have claims that it no longer knows.
    pub(super) server_starts: u32,
}

/// What other workers must know of this one before they take places over.
#[derive(Debug, Default)]
pub(super) struct UsedPlaces(AtomicU32);

impl UsedPlaces {
    /// Sets the largest number of places that a host has or may get.
    pub(super) fn set(&self, places: u32) {
        self.0.store(places, Ordering::Release);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }
}

/// The numbers of workers that seem to be dead.
pub(super) type Silent = Vec<i32>;

/// Keeps the row of this worker.
pub(super) struct Membership {
    database: Database,
    /// The number of concurrent requests to a host, over all workers.
    limit: u32,
    /// After this long without a beat a worker is taken for dead.
    silence: Duration,
    used: Arc<UsedPlaces>,
    member: watch::Sender<Option<Member>>,
    silent: mpsc::Sender<Silent>,
    judgement: Judgement,
    worker: Option<i32>,
    /// How many of the places this worker should have.
    share: u32,
    /// The last start of the database that was seen, and how many came before it.
    server_start: Option<String>,
    server_starts: u32,
}

impl Membership {
    /// A worker that has not joined yet, what it will know of itself, and the places that it uses. It sends workers that
    /// seem to be dead to `silent`. Its connections must serve nothing else, so that no beat waits for one.
    pub(super) fn new(
        database: Database,
        limit: u32,
        silence: Duration,
        silent: mpsc::Sender<Silent>,
    ) -> (Self, watch::Receiver<Option<Member>>, Arc<UsedPlaces>) {
        let (member, own) = watch::channel(None);
        let used = Arc::<UsedPlaces>::default();
        let membership = Self {
            database,
            limit,
            silence,
            used: Arc::clone(&used),
            member,
            silent,
            judgement: Judgement::new(silence),
            worker: None,
            share: 0,
            server_start: None,
            server_starts: 0,
        };
        (membership, own, used)
    }

    /// Keeps this worker alive until it is cancelled, and returns its number.
    pub(super) async fn run(mut self, shutdown: CancellationToken) -> Option<i32> {
        while !shutdown.is_cancelled() {
            let started = Instant::now();
            if let Err(error) = self.beat(started).await {
                self.judgement.failed();
                error.warn("the worker could not say that it is alive");
            }
            tokio::select! {
                () = tokio::time::sleep(BEAT.saturating_sub(started.elapsed())) => {}
                () = shutdown.cancelled() => {}
            }
        }
        self.worker
    }

    async fn beat(&mut self, started: Instant) -> Result<(), Error> {
        let id = match self.worker {
            Some(id) => id,
            None => *self
                .worker
                .insert(self.database.transaction(store::join).await?),
        };
        // Places that the dispatcher may still use are not given up.
        let (kept, silence) = (self.share.max(self.used.get()), self.silence);
        let beat = move |connection: &mut Connection| {
            store::beat(connection, id, to_signed(kept), silence)
        };
        let workers = self.database.run(beat).await?;
        self.note_server_start(&workers.server_start);
        let Some(mut places) = workers.places else {
            tracing::warn!(
                worker.id = id,
                "another worker took this one for dead; it joins again"
            );
            self.worker = None;
            self.member.send_replace(None);
            return Ok(());
        };
        self.share = share(self.limit, &workers);
        if to_signed(self.share) > places {
            places = self.raise(id).await?.unwrap_or(places);
        }
        self.member.send_replace(Some(Member {
            id,
            places: self.share.min(places.max(0).unsigned_abs()),
            alive_until: started + self.silence / 4 * 3,
            server_starts: self.server_starts,
        }));
        if self.judgement.succeeded(started) && !workers.silent.is_empty() {
            // While others are being released, these are found again by the next beat.
            let _ = self.silent.try_send(workers.silent);
        }
        Ok(())
    }

    fn note_server_start(&mut self, found: &str) {
        let known = self.server_start.replace(found.to_owned());
        if known.is_some_and(|known| known != found) {
            tracing::warn!(
                "the database has started again; claims that its end left behind are released"
            );
            self.server_starts = self.server_starts.wrapping_add(1);
        }
    }

    /// Raises the worker's places to its share, as far as the others leave them. Returns its places, unless another
    /// worker takes some at this moment.
    async fn raise(&self, worker: i32) -> Result<Option<i32>, Error> {
        let (share, limit) = (to_signed(self.share), to_signed(self.limit));
        let raise = move |connection: &mut Connection| {
            let free = store::try_lock(connection)?;
            let raise = free.then(|| store::raise_places(connection, worker, share, limit));
            raise.transpose()
        };
        self.database.transaction(raise).await
    }
}

/// Deletes the row of a worker that has ended everything, if it has joined.
pub(super) async fn leave(database: &Database, worker: Option<i32>) {
    let Some(worker) = worker else { return };
    let leave = move |connection: &mut Connection| store::leave(connection, worker);
    if let Err(error) = database.transaction(leave).await {
        tracing::warn!(error = ?error, "the worker could not leave; another one will delete it");
    }
}

/// A worker's share of the places of a host. The oldest workers have the rest of the division.
fn share(limit: u32, workers: &Workers) -> u32 {
    let count = u32::try_from(workers.workers).unwrap_or(u32::MAX).max(1);
    let older = u32::try_from(workers.older).unwrap_or(u32::MAX);
    limit / count + u32::from(older < limit % count)
}

fn to_signed(places: u32) -> i32 {
    i32::try_from(places).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Workers, share};

    #[test]
    fn the_shares_of_all_workers_are_the_limit() {
        for (limit, workers, expected) in [
            (16, 1, vec![16]),
            (16, 3, vec![6, 5, 5]),
            (2, 3, vec![1, 1, 0]),
        ] {
            let shares = (0..workers).map(|older| {
                let places = Some(0);
                share(
                    limit,
                    &Workers {
                        places,
                        workers,
                        older,
                        silent: Vec::new(),
                        server_start: String::new(),
                    },
                )
            });
            assert_eq!(shares.collect::<Vec<_>>(), expected);
        }
    }
}
