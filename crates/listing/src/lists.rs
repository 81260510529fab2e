//! Lists and counts: their connections, and limits on the memory of pages.
//!
//! A page has at most [`LONG_PAGE`] bytes; a longer one ends early, and its `Link` leads to the rest. Long pages share
//! a fixed amount of memory, from before they are loaded until they are sent. When it is used up, only lists that turn
//! out to be longer than [`SHORT_PAGE`] wait for it.
//!
//! Few queries run for one user at the same time, however many requests there are. A query whose caller is gone counts
//! until it ends, because it still has a connection.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::rt;
use actix_web::web;
use database::{Connection, Database, Error};
use fairness::{Each, Owner, Share, Shares};
use http_kit::Problem;
use serde::Serialize;
use tokio::time::timeout;
use tracing::Instrument as _;
use values::UserId;

use crate::encoded_page::{EncodedPage, Held, SHORT_PAGE};
use crate::{Page, PageLimits, Paging};

/// The maximum length of a page, both of its rows in the database and of its JSON.
const LONG_PAGE: u32 = 4 * 1024 * 1024;
/// The memory of a long page until it is JSON: first the database's result and the rows, then the rows and the JSON.
const LOADING: u32 = 2 * LONG_PAGE;
/// The rows that are loaded for a short page in bytes: what is estimated for a row may be much more than its JSON.
const SHORT_ROWS: u32 = 4 * SHORT_PAGE;
/// Pages up to this number of rows are serialized at once: that takes less time than another thread takes to start.
const ROWS_AT_ONCE: usize = 20;
/// A long page is not loaded later than this, so that it is not loaded for a gateway that has given up.
const MAX_WAIT_FOR_LONG_PAGE: Duration = Duration::from_secs(12);
const LONG_PAGES: u32 = 8 * LOADING;
/// How many queries for lists run for one user at the same time.
const QUERIES_PER_CALLER: u64 = 2;
/// How many long pages of one user there are at the same time: one takes most of a core.
const LONG_PAGES_PER_CALLER: u64 = 1;
const MAX_WAIT: Duration = Duration::from_secs(3);
/// How many requests of a user wait for the same share, or of all users for memory; more are refused at once.
const MAX_WAITING: u64 = 64;

/// Runs the lists and counts of a service.
#[derive(Clone)]
pub struct Lists {
    database: Database,
    queries: Arc<Shares<UserId, Each>>,
    long_pages: Arc<Shares<UserId, Each>>,
    memory: Arc<Shares<(), Each>>,
}

impl Lists {
    /// Uses the connections of `database`, which should be for lists only.
    pub fn new(database: Database) -> Self {
        Self {
            database,
            queries: Shares::with_waiting(Each(QUERIES_PER_CALLER), MAX_WAITING),
            long_pages: Shares::with_waiting(Each(LONG_PAGES_PER_CALLER), MAX_WAITING),
            memory: Shares::with_waiting(Each(LONG_PAGES.into()), MAX_WAITING),
        }
    }

    /// Runs a query with a short result, such as a count.
    ///
    /// # Errors
    /// The error of the query, and `503 overloaded` when too many queries of the caller run.
    pub async fn query<T: Send + 'static, E: From<Error> + Send + 'static>(
        &self,
        caller: Option<UserId>,
        query: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> Result<T, Problem>
    where
        Problem: From<E>,
    {
        let lists = self.clone();
        detached(async move {
            let _running = lists.start(caller).await?;
            Ok(lists.database.run(query).await?)
        })
        .await
    }

    /// Loads a page and serializes its rows. `load` may run twice.
    ///
    /// # Errors
    /// The error of `load`, and `503 overloaded` when too many queries of the caller run, or too many long pages are in
    /// memory.
    pub async fn page<R: Send + 'static, T: Serialize, E: From<Error> + Send + 'static>(
        &self,
        caller: Option<UserId>,
        paging: Paging,
        load: impl Fn(&mut Connection, PageLimits) -> Result<Page<R>, E> + Clone + Send + 'static,
        response: impl Fn(R) -> T + Clone + Send + 'static,
    ) -> Result<EncodedPage, Problem>
    where
        Problem: From<E>,
    {
        let lists = self.clone();
        detached(async move {
            let started = Instant::now();
            let load_up_to = async |max_loaded: u32, max_bytes: u32| {
                let running = lists.start(caller).await?;
                let load = load.clone();
                let bytes = max_loaded as usize;
                let limits = PageLimits { paging, bytes };
                let page = lists.database.run(move |rows| load(rows, limits));
                let page = page.await?;
                drop(running);
                encode(page, max_bytes as usize, response.clone()).await
            };
            let held = match lists.try_hold(caller) {
                Some(held) => held,
                None => {
                    let short = load_up_to(SHORT_ROWS, SHORT_PAGE).await?;
                    let Some(caller) = caller.filter(|_| short.is_cut) else {
                        return Ok(short);
                    };
                    drop(short);
                    let held = lists.hold(caller).await?;
                    if started.elapsed() > MAX_WAIT_FOR_LONG_PAGE {
                        return Err(overloaded());
                    }
                    held
                }
            };
            Ok(load_up_to(LONG_PAGE, LONG_PAGE).await?.hold(held))
        })
        .await
    }

    /// Callers without a token have no long pages, because they could not be told apart.
    fn try_hold(&self, caller: Option<UserId>) -> Option<Held> {
        let _caller = self.long_pages.try_acquire(caller?, 1).ok()?;
        let memory = self.memory.try_acquire((), LOADING.into()).ok()?;
        Some(Held { memory, _caller })
    }

    async fn hold(&self, caller: UserId) -> Result<Held, Problem> {
        let _caller = wait(&self.long_pages, caller, 1).await?;
        let memory = wait(&self.memory, (), LOADING.into()).await?;
        Ok(Held { memory, _caller })
    }

    /// Waits until one more query of the caller may run. Callers without a token have no limit: a task's secret opens one
    /// task.
    async fn start(&self, caller: Option<UserId>) -> Result<Option<Share<UserId, Each>>, Problem> {
        match caller {
            Some(caller) => wait(&self.queries, caller, 1).await.map(Some),
            None => Ok(None),
        }
    }
}

async fn wait<O: Owner>(
    shares: &Arc<Shares<O, Each>>,
    owner: O,
    units: u64,
) -> Result<Share<O, Each>, Problem> {
    let share = timeout(MAX_WAIT, shares.acquire(owner, units)).await;
    share.ok().and_then(Result::ok).ok_or_else(overloaded)
}

/// Serializes a page, a long one on a thread for blocking work.
async fn encode<R: Send + 'static, T: Serialize>(
    page: Page<R>,
    max_bytes: usize,
    response: impl Fn(R) -> T + Send + 'static,
) -> Result<EncodedPage, Problem> {
    let is_short = page.rows.len() <= ROWS_AT_ONCE;
    let encode = move || EncodedPage::new(page, max_bytes, response);
    let encoded = if is_short {
        encode()
    } else {
        let encoded = web::block(encode).await;
        encoded.map_err(|error| Problem::internal(&error))?
    };
    encoded.map_err(|error| Problem::internal(&error))
}

/// Runs to its end even if the caller goes away, so that shares are held as long as a statement runs.
async fn detached<T: 'static>(
    work: impl Future<Output = Result<T, Problem>> + 'static,
) -> Result<T, Problem> {
    let done = rt::spawn(work.in_current_span()).await;
    done.unwrap_or_else(|error| Err(Problem::internal(&error)))
}

fn overloaded() -> Problem {
    Problem::unavailable(
        "overloaded",
        "Too many lists are being read. Try again shortly, or ask for fewer rows with `limit`.",
    )
}
