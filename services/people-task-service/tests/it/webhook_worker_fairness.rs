//! No receiver delays another, and none gets more requests at a time than it should.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use messaging::Publisher;
use testkit::eventually;

use crate::webhook_worker_stage::{GRACE, Reaction, Receiver, Stage, wake_up};

/// Urls of receivers that take connections and never answer.
fn silent(receivers: usize, deliveries: usize) -> (Vec<TcpListener>, Vec<String>) {
    let listeners: Vec<_> = (0..receivers)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let urls = listeners.iter().flat_map(|listener| {
        let url = format!("http://{}/", listener.local_addr().unwrap());
        std::iter::repeat_n(url, deliveries)
    });
    let urls = urls.collect();
    (listeners, urls)
}

/// How long a delivery takes from its row to its receiver: the shortest of three times, because a busy
/// machine delays single ones, and a worker that lets others go first delays all.
async fn time_to_deliver(stage: &Stage, publisher: &Publisher, receiver: &Receiver) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..3 {
        let (started, before) = (Instant::now(), receiver.calls().len());
        let ids = stage.decide(&[receiver.url("/")]);
        publisher.send([wake_up(&ids[0])]);
        receiver.receives(before + 1).await;
        shortest = shortest.min(started.elapsed());
    }
    shortest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_deliveries_for_a_dead_host_do_not_delay_a_healthy_one() {
    let (stage, healthy) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let (_listeners, urls) = silent(1, 10_000);
    let publisher = stage.publisher().await;
    stage.decide(&urls);
    let worker = stage.worker(&[]).await;
    stage.reach(16, "lease_until > now()").await;
    let time = time_to_deliver(&stage, &publisher, &healthy).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
    eventually(
        "most of the dead host's deliveries to be parked",
        async || (stage.count("parked") > 9_000).then_some(()),
    )
    .await;
    let time = time_to_deliver(&stage, &publisher, &healthy).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
    assert_eq!(stage.count("lease_until > now()"), 16);
    assert!(worker.stop(GRACE).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_dead_hosts_together_do_not_delay_a_healthy_one() {
    let (stage, healthy) = (Stage::new(), Receiver::start(|_| Reaction::status(200)));
    let (_listeners, urls) = silent(100, 30);
    let publisher = stage.publisher().await;
    stage.decide(&urls);
    let _worker = stage.worker(&[]).await;
    eventually("the dead hosts to take what they get", async || {
        (stage.count("lease_until > now()") >= 768).then_some(())
    })
    .await;
    let time = time_to_deliver(&stage, &publisher, &healthy).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_never_gets_more_requests_at_a_time_than_its_limit_from_all_workers_together() {
    let slow = |_| Reaction::after(Duration::from_millis(20));
    let (stage, receiver) = (Stage::new(), Receiver::start(slow));
    stage.decide(&vec![receiver.url("/"); 300]);
    let limit = [("WEBHOOK_MAX_IN_FLIGHT_PER_HOST", "3")];
    let workers = [stage.worker(&limit).await, stage.worker(&limit).await];
    stage.reach(300, "status = 'sent'").await;
    assert_eq!(receiver.calls().len(), 300);
    assert_eq!(receiver.most_at_once(), 3);
    for worker in workers {
        assert!(worker.stop(GRACE).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_hosts_than_attempts_at_once_are_all_served() {
    let stage = Stage::new();
    let receivers: Vec<_> = (0..12)
        .map(|_| Receiver::start(|_| Reaction::after(Duration::from_millis(5))))
        .collect();
    let urls = (0..600).map(|n: usize| receivers[n % 12].url("/"));
    stage.decide(&urls.collect::<Vec<_>>());
    let mut settings = stage.settings(&[]);
    settings.max_in_flight = 8;
    let _worker = people_task_service::run_webhook_worker(settings)
        .await
        .unwrap();
    stage.reach(600, "status = 'sent'").await;
    assert!(
        receivers
            .iter()
            .all(|receiver| receiver.calls().len() == 50)
    );
}
