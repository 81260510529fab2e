//! What is wrong with one row, or with the ownership of hosts, costs nothing else.

use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use people_task_service::run_webhook_worker;
use testkit::eventually;

use crate::webhook_worker::fixture::{CannedResponse, Fixture, Receiver};

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
async fn a_worker_whose_hosts_another_one_has_taken_loads_none_of_their_deliveries() {
    let hang = |_| CannedResponse::after(Duration::from_secs(3_600));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(hang));
    fixture.decide(&vec![receiver.url("/"); 40]);
    let mut settings = fixture.settings(&[("WEBHOOK_TIMEOUT", "1s")]);
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
    let before = transactions();
    // A worker that loads them does it hundreds of times a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let loads = transactions() - before;
    assert!(loads < 200, "{loads}");
    assert_eq!(receiver.calls().len(), 4);
}
