//! The limits of lists, with loads that the tests control instead of statements.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::body::to_bytes;
use database::{Database, DatabaseSettings, Error};
use futures_util::future::{join, join_all};
use http_kit::Problem;
use listing::{EncodedPage, Lists, Page, PageLimits, Paging};
use testkit::TestDatabase;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use values::UserId;

const KIB: usize = 1024;
/// The requested page.
const PAGING: Paging = Paging {
    limit: 100,
    offset: 0,
};
/// How many long pages are loaded at the same time.
const LOADING: usize = 8;
/// After how many unsent pages of 4 MiB there is no memory for another one.
const UNSENT: usize = 15;

/// Lists that have a connection for each query of a test.
struct Fixture {
    lists: Lists,
    _database: TestDatabase,
}

impl Deref for Fixture {
    type Target = Lists;

    fn deref(&self) -> &Lists {
        &self.lists
    }
}

fn lists() -> Fixture {
    let database = TestDatabase::empty();
    let settings = DatabaseSettings {
        url: database.users_url(),
        owner_url: None,
        pool_size: 10,
        timeout: Duration::from_secs(5),
    };
    Fixture {
        lists: Lists::new(Database::connect(&settings)),
        _database: database,
    }
}

fn user() -> Option<UserId> {
    Some(UserId::generate())
}

/// Loads rows of a size, as a store does: as many as fit, but at least one.
fn rows(size: usize, max_bytes: usize) -> Page<String> {
    let fitting = (max_bytes / size).clamp(1, 100);
    let rows = vec!["x".repeat(size - 3); fitting];
    PAGING.page(rows, PAGING.limit)
}

async fn page(lists: &Lists, caller: Option<UserId>, size: usize) -> Result<EncodedPage, Problem> {
    let load = move |_: &mut _, limits: PageLimits| Ok::<_, Error>(rows(size, limits.bytes));
    lists.page(caller, PAGING, load, |row| row).await
}

/// Loads a long page when the gate opens.
async fn gated_page(lists: &Lists, caller: Option<UserId>, gate: &Arc<Gate>) -> EncodedPage {
    let gate = Arc::clone(gate);
    let load = move |_: &mut _, limits: PageLimits| {
        gate.pass();
        Ok::<_, Error>(rows(40 * KIB, limits.bytes))
    };
    let page = lists.page(caller, PAGING, load, |row| row);
    page.await.unwrap()
}

/// Holds up loads, and counts them.
struct Gate {
    arrived: AtomicUsize,
    open: Semaphore,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            arrived: AtomicUsize::new(0),
            open: Semaphore::new(0),
        })
    }

    fn pass(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let _permit = Handle::current().block_on(self.open.acquire()).unwrap();
    }

    async fn wait_for(&self, arrived: usize) {
        while self.arrived.load(Ordering::SeqCst) < arrived {
            yield_now().await;
        }
    }
}

async fn length(page: EncodedPage) -> usize {
    let response = page.respond("/tasks", "limit=100");
    to_bytes(response.into_body()).await.unwrap().len()
}

#[actix_web::test]
async fn a_long_page_ends_early_and_leads_to_the_rest() {
    let long = page(&lists(), user(), 50 * KIB).await.unwrap();
    let response = long.respond("/tasks", "limit=100&offset=0");
    // 81 rows of 50 KiB fit into 4 MiB.
    let link = response.headers().get("link").unwrap();
    assert_eq!(link, "</tasks?limit=100&offset=81>; rel=\"next\"");
    let content_type = response.headers().get("content-type").unwrap();
    assert_eq!(content_type, "application/json");
    let body = to_bytes(response.into_body()).await.unwrap();
    let read: Vec<String> = serde_json::from_slice(&body).unwrap();
    assert_eq!(read.len(), 81);
}

#[actix_web::test]
async fn short_lists_do_not_wait_while_the_memory_of_long_pages_is_used_up() {
    let (lists, gate) = (lists(), Gate::new());
    let loading = (0..LOADING).map(|_| gated_page(&lists, user(), &gate));
    let meanwhile = async {
        gate.wait_for(LOADING).await;
        let short = page(&lists, user(), KIB).await.unwrap();
        assert_eq!(length(short).await, 100 * KIB + 1);
        let refused = page(&lists, user(), 50 * KIB).await.unwrap_err();
        assert_eq!(refused.code(), "overloaded");
        gate.open.add_permits(1);
    };
    let _ = join(join_all(loading), meanwhile).await;
    assert!(page(&lists, user(), 50 * KIB).await.is_ok());
}

#[actix_web::test]
async fn a_long_page_counts_until_it_is_sent() {
    let lists = lists();
    let long = || page(&lists, user(), 41 * KIB);
    let mut unsent = Vec::new();
    while unsent.len() < UNSENT {
        unsent.push(long().await.unwrap());
    }
    assert_eq!(long().await.unwrap_err().code(), "overloaded");
    // Sending a page frees its memory, and dropping one, too.
    let _ = length(unsent.pop().unwrap()).await;
    drop(unsent.pop());
    assert!(long().await.is_ok());
}

#[actix_web::test]
async fn one_user_has_one_long_page_and_others_have_theirs() {
    let lists = lists();
    let ada = user();
    let first = page(&lists, ada, 50 * KIB).await.unwrap();
    let both = join(page(&lists, ada, 50 * KIB), page(&lists, user(), 50 * KIB));
    let (second, of_another_user) = both.await;
    assert_eq!(second.unwrap_err().code(), "overloaded");
    assert!(of_another_user.is_ok());
    // The user's short lists do not wait for the long ones.
    assert!(page(&lists, ada, KIB).await.is_ok());
    drop(first);
    assert!(page(&lists, ada, 50 * KIB).await.is_ok());
}

#[actix_web::test]
async fn the_queries_of_one_user_are_limited_even_when_their_callers_are_gone() {
    let (lists, gate) = (lists(), Gate::new());
    let ada = user();
    let query = |caller| {
        let gate = Arc::clone(&gate);
        lists.query(caller, move |_: &mut _| {
            gate.pass();
            Ok::<_, Error>(())
        })
    };
    // Each caller leaves once its query runs.
    for queries in 1..=2 {
        tokio::select! {
            _ = query(ada) => unreachable!("the gate is closed"),
            () = gate.wait_for(queries) => {}
        }
    }
    assert_eq!(query(ada).await.unwrap_err().code(), "overloaded");
    let of_another_user = join(query(user()), async {
        gate.wait_for(3).await;
        gate.open.add_permits(1);
    });
    of_another_user.await.0.unwrap();
    query(ada).await.unwrap();
}

#[actix_web::test]
async fn the_queries_of_callers_without_a_token_are_not_limited() {
    let (lists, gate) = (lists(), Gate::new());
    let queries = (0..3).map(|_| {
        let gate = Arc::clone(&gate);
        lists.query(None, move |_: &mut _| {
            gate.pass();
            Ok::<_, Error>(())
        })
    });
    let all = join(join_all(queries), async {
        gate.wait_for(3).await;
        gate.open.add_permits(1);
    });
    assert!(all.await.0.iter().all(Result::is_ok));
}
