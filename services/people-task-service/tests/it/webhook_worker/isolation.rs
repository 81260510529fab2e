//! What is wrong with one row, or with the ownership of hosts, costs nothing else.

use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use people_task_service::run_webhook_worker;
use testkit::eventually;

use crate::webhook_worker::fixture::{CannedResponse, Fixture, Receiver};
use crate::webhook_worker::proxy::Proxy;

#[tokio::test]
async fn a_row_that_cannot_be_read_stops_only_the_deliveries_of_its_user_to_its_origin() {
    let ok = |_| CannedResponse::status(200);
    let (fixture, other, receiver) = (Fixture::new(), Receiver::start(ok), Receiver::start(ok));
    fixture.decide(&[receiver.url("/broken")]);
    let policy = "SET search_path = people_task;
        CREATE POLICY readable ON webhooks USING (1 / (url NOT LIKE '%/broken')::integer = 1);
        ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY";
    fixture.database.admin().batch_execute(policy).unwrap();
    for _ in 0..3 {
        fixture.decide(&[other.url("/"), receiver.url("/")]);
    }
    let _worker = fixture.worker(&[]).await;
    fixture.wait_for_count(6, "status = 'sent'").await;
    for sent in [8, 10, 12] {
        fixture.decide(&[other.url("/"), receiver.url("/")]);
        fixture.wait_for_count(sent, "status = 'sent'").await;
    }
    assert_eq!(fixture.count("status = 'pending' AND attempts = 0"), 1);
}

#[tokio::test]
async fn bodies_of_one_user_that_no_receiver_takes_leave_memory_to_others() {
    let hang = |_| CannedResponse::after(Duration::from_secs(3_600));
    let ok = |_| CannedResponse::status(200);
    let (fixture, healthy) = (Fixture::new(), Receiver::start(ok));
    let silent = [2, 3, 4, 5].map(|host| Receiver::start_at([127, 0, 0, host], hang));
    let urls = silent.iter().cycle().map(|receiver| receiver.url("/"));
    fixture.decide(&urls.take(16).collect::<Vec<_>>());
    let mut settings = fixture.settings(&[]);
    // A body has about 250.
    settings.max_body_bytes = 4_000;
    let _worker = run_webhook_worker(settings).await.unwrap();
    eventually("some to wait for memory", async || {
        (fixture.count("next_attempt > now() AND attempts = 0") > 0).then_some(())
    })
    .await;
    let ids = fixture.decide(&[healthy.url("/")]);
    fixture.wait_for_status(&ids[0], "sent").await;
    let calls = silent.iter().map(|receiver| receiver.calls().len());
    let calls: usize = calls.sum();
    assert!((1..=6).contains(&calls), "{calls}");
}

#[tokio::test]
async fn a_failure_of_a_worker_that_was_taken_for_dead_counts_no_attempt() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|before| match before {
            0 => CannedResponse {
                status: 404,
                ..CannedResponse::after(Duration::from_secs(4))
            },
            _ => CannedResponse::status(200),
        }),
    );
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[("WEBHOOK_RETRY_SCHEDULE", "1h")]).await;
    receiver.wait_for_calls(1).await;
    // It cannot beat until the response has come, and then it is no member any more.
    let mut others = fixture.database.admin();
    others
        .batch_execute("BEGIN; LOCK TABLE people_task.delivery_workers IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    others
        .batch_execute("DELETE FROM people_task.delivery_workers; COMMIT")
        .unwrap();
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!((row.attempts, receiver.calls().len()), (1, 2));
}

#[tokio::test]
async fn a_failure_that_ends_after_others_could_take_its_host_counts_no_attempt() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|before| match before {
            0 => CannedResponse::after(Duration::from_secs(3_600)),
            _ => CannedResponse::status(200),
        }),
    );
    let ids = fixture.decide(&[receiver.url("/")]);
    let settings = [("WEBHOOK_TIMEOUT", "5s"), ("WEBHOOK_RETRY_SCHEDULE", "1h")];
    let _worker = fixture.worker(&settings).await;
    receiver.wait_for_calls(1).await;
    fixture.execute("DELETE FROM delivery_workers");
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!((row.attempts, receiver.calls().len()), (1, 2));
}

#[tokio::test]
async fn a_failure_that_is_recorded_after_a_takeover_counts_nothing() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|before| match before {
            0 => CannedResponse {
                status: 410,
                ..CannedResponse::after(Duration::from_secs(1))
            },
            _ => CannedResponse::after(Duration::from_secs(5)),
        }),
    );
    let ids = fixture.decide(&[receiver.url("/")]);
    let direct = fixture.database.people_task_url();
    let proxy = Proxy::start(&direct).await;
    let url = proxy.url(&direct);
    let _cut_off = fixture.worker(&[("DATABASE_URL", url.expose())]).await;
    receiver.wait_for_calls(1).await;
    // It fails before any other worker could take this one for dead.
    proxy.cut().await;
    let _other = fixture.worker(&[]).await;
    receiver.wait_for_calls(2).await;
    proxy.reopen();
    eventually("the first worker to be back", async || {
        (fixture.workers() == 2).then_some(())
    })
    .await;
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!((row.attempts, receiver.calls().len()), (1, 2));
}

#[tokio::test]
async fn a_worker_whose_hosts_another_one_has_taken_loads_none_of_their_deliveries() {
    let hang = |_| CannedResponse::after(Duration::from_secs(3_600));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(hang));
    fixture.decide(&vec![receiver.url("/"); 40]);
    let mut settings = fixture.settings(&[("WEBHOOK_TIMEOUT", "3s")]);
    // The other one is not taken for dead.
    settings.silence = Duration::from_secs(60);
    let _worker = run_webhook_worker(settings).await.unwrap();
    receiver.wait_for_calls(4).await;
    fixture.execute(
        "WITH other AS (
            INSERT INTO delivery_workers (protocol, sends_due)
            SELECT protocol, sends_due FROM delivery_workers RETURNING id
        ) UPDATE delivery_shards SET worker_id = other.id FROM other",
    );
    fixture.wait_for_count(4, "attempts > 0").await;
    let transactions = || {
        fixture.count_rows(
            "generate_series(1, (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()))",
        )
    };
    eventually("its retries to be due", async || {
        (fixture.count("attempts > 0 AND next_attempt < now()") > 0).then_some(())
    })
    .await;
    // Otherwise those of the waits above are counted later.
    fixture.execute("SELECT pg_stat_force_next_flush()");
    let before = transactions();
    // A worker that loads them does it hundreds of times a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let loads = transactions() - before;
    assert!(loads < 200, "{loads}");
    assert_eq!(receiver.calls().len(), 4);
}
