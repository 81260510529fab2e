//! No receiver delays another, and none gets more concurrent requests than its limit.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection as _;
use messaging::Publisher;
use outbound::SystemResolver;
use people_task_service::run_webhook_worker;
use testkit::{TestNameServer, eventually};

use crate::webhook_worker::fixture::{CannedResponse, Fixture, Receiver, STOP_TIMEOUT};

/// When a request that hangs is given up, by default.
const HANGING: Duration = Duration::from_secs(10);

/// Hosts that accept requests and never respond, and URLs of them.
fn silent(hosts: u8, deliveries: usize) -> (Vec<Receiver>, Vec<String>) {
    let hang = |_| CannedResponse::after(Duration::from_secs(3_600));
    let receivers: Vec<_> = (1..=hosts)
        .map(|host| Receiver::start_at([127, 0, 2, host], hang))
        .collect();
    let urls = receivers
        .iter()
        .flat_map(|receiver| std::iter::repeat_n(receiver.url("/"), deliveries));
    let urls = urls.collect();
    (receivers, urls)
}

fn calls(receivers: &[Receiver]) -> usize {
    let calls = receivers.iter().map(|receiver| receiver.calls().len());
    calls.sum()
}

async fn time_to_deliver(
    fixture: &Fixture,
    publisher: &Publisher,
    receiver: &Receiver,
) -> Duration {
    let url = receiver.url("/");
    time_to_deliver_to(fixture, publisher, receiver, [&url; 3]).await
}

/// How long a delivery takes from its row to its receiver, of which these are URLs. It is the shortest of three times,
/// because a busy machine delays single deliveries and an unfair worker delays all.
async fn time_to_deliver_to(
    fixture: &Fixture,
    publisher: &Publisher,
    receiver: &Receiver,
    urls: [&str; 3],
) -> Duration {
    let mut shortest = Duration::MAX;
    for url in urls {
        let before = receiver.calls().len();
        let ids = fixture.decide(&[url]);
        let (started, message) = (Instant::now(), fixture.message_for(&ids[0]));
        publisher.send([message]);
        receiver.wait_for_calls(before + 1).await;
        shortest = shortest.min(started.elapsed());
    }
    shortest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_deliveries_for_a_dead_host_do_not_delay_a_healthy_one() {
    let (fixture, healthy) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let (dead, urls) = silent(1, 10_000);
    let publisher = fixture.publisher().await;
    fixture.decide(&urls);
    let worker = fixture.worker(&[("WEBHOOK_TIMEOUT", "1s")]).await;
    eventually("requests to the dead host", async || {
        (calls(&dead) >= 4).then_some(())
    })
    .await;
    let time = time_to_deliver(&fixture, &publisher, &healthy).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
    eventually("five failures", async || {
        (fixture.count("attempts > 0") >= 5).then_some(())
    })
    .await;
    eventually("the dead host to be tried with one request", async || {
        let ended = fixture.count("attempts > 0") + fixture.count("attempts > 1");
        (calls(&dead) <= usize::try_from(ended).unwrap() + 1).then_some(())
    })
    .await;
    let time = time_to_deliver(&fixture, &publisher, &healthy).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
    assert!(worker.stop(STOP_TIMEOUT).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_dead_hosts_do_not_delay_a_healthy_one() {
    let (fixture, healthy) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let (dead, urls) = silent(100, 30);
    let publisher = fixture.publisher().await;
    fixture.decide(&urls);
    let _worker = fixture.worker(&[]).await;
    eventually("the dead hosts to take what they get", async || {
        (calls(&dead) >= 400).then_some(())
    })
    .await;
    let time = time_to_deliver(&fixture, &publisher, &healthy).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_that_may_end_workers_are_tried_in_turn_by_their_owners() {
    let (fixture, healthy) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let (_dead, urls) = silent(10, 30);
    fixture.decide(&urls);
    fixture.execute("UPDATE deliveries SET next_attempt = now() - interval '1 minute'");
    fixture.decide(&[healthy.url("/"), healthy.url("/"), healthy.url("/")]);
    fixture.execute("UPDATE deliveries SET lost_claims = 2");
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::ZERO;
    let _worker = run_webhook_worker(settings).await.unwrap();
    // Each of the others takes a second, and is as often the next one.
    healthy.wait_for_calls(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_that_may_end_workers_are_tried_one_at_once_after_the_other() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    fixture.decide(&vec![receiver.url("/"); 150]);
    fixture.execute("UPDATE deliveries SET lost_claims = 2");
    let mut settings = fixture.settings(&[]);
    settings.suspects_after = Duration::ZERO;
    let _worker = run_webhook_worker(settings).await.unwrap();
    // One at each tick would take longer than this waits.
    receiver.wait_for_calls(150).await;
    assert_eq!(receiver.max_concurrent(), 1);
}

/// An answer that never comes.
fn never() -> CannedResponse {
    CannedResponse::after(Duration::from_secs(3_600))
}

/// How long a user's delivery to `/healthy` of a receiver takes.
async fn time_of_healthy(
    fixture: &Fixture,
    publisher: &Publisher,
    receiver: &Receiver,
) -> Duration {
    let healthy = || {
        let calls = receiver.calls().into_iter();
        calls.filter(|call| call.path == "/healthy").count()
    };
    let before = healthy();
    let ids = fixture.decide(&[receiver.url("/healthy")]);
    let (started, message) = (Instant::now(), fixture.message_for(&ids[0]));
    publisher.send([message]);
    eventually("the healthy delivery", async || {
        (healthy() > before).then_some(())
    })
    .await;
    started.elapsed()
}

/// Lets one user's deliveries to these URLs be under way or fail, and returns how long another user's delivery to
/// `/healthy` of the receiver takes meanwhile: the third longest of 20, as the machine may halt for a moment.
async fn time_beside(fixture: &Fixture, receiver: &Receiver, urls: &[String]) -> Duration {
    let publisher = fixture.publisher().await;
    let worker = fixture.worker(&[("WEBHOOK_TIMEOUT", "3s")]).await;
    let ids = fixture.decide(urls);
    publisher.send(ids.iter().map(|id| fixture.message_for(id)).take(20));
    eventually("failures", async || {
        (fixture.count("attempts > 0") >= 5).then_some(())
    })
    .await;
    let mut times = Vec::new();
    for _ in 1..=20 {
        times.push(time_of_healthy(fixture, &publisher, receiver).await);
    }
    assert!(worker.stop(STOP_TIMEOUT).await);
    times.sort_unstable();
    times[17]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_port_delays_no_other_port_of_its_host() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let closed = vec!["http://127.0.0.1:9/".to_owned(); 200];
    let time = time_beside(&fixture, &receiver, &closed).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_port_delays_no_other_port_of_its_host() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let silent = Receiver::start(|_| never());
    let urls = vec![silent.url("/"); 200];
    let time = time_beside(&fixture, &receiver, &urls).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_origin_answers_to_one_user_delays_no_other_user() {
    for bad in ["/500", "/429", "/hangs"] {
        let react = |_, path: &str| match path {
            "/500" => CannedResponse::status(500),
            "/429" => CannedResponse {
                header: Some(("retry-after", "60".to_owned())),
                ..CannedResponse::status(429)
            },
            "/hangs" => never(),
            _ => CannedResponse::status(200),
        };
        let (fixture, receiver) = (
            Fixture::new(),
            Receiver::start_by_path([127, 0, 0, 1], react),
        );
        let urls = vec![receiver.url(bad); 200];
        let time = time_beside(&fixture, &receiver, &urls).await;
        assert!(time < Duration::from_secs(1), "{bad}: {time:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_whose_requests_failed_try_an_origin_in_turn() {
    let was_called = AtomicBool::new(false);
    let react = move |_, path: &str| match path {
        "/restarts" if was_called.swap(true, Ordering::Relaxed) => CannedResponse::status(200),
        _ => never(),
    };
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start_by_path([127, 0, 0, 1], react),
    );
    let ids = fixture.decide(&[receiver.url("/restarts")]);
    for _ in 0..12 {
        fixture.decide(&vec![receiver.url("/hangs"); 30]);
    }
    let settings = [
        ("WEBHOOK_TIMEOUT", "300ms"),
        ("WEBHOOK_RETRY_SCHEDULE", "500ms,500ms,500ms,500ms"),
    ];
    let _worker = fixture.worker(&settings).await;
    fixture.wait_for_status(&ids[0], "sent").await;
}

/// A receiver that answers as many requests at once, and afterwards only those to `/healthy`.
fn hangs_after(answered: usize) -> Receiver {
    Receiver::start_by_path([127, 0, 0, 1], move |before, path| match path {
        "/healthy" => CannedResponse::status(200),
        _ if before < answered => CannedResponse::status(200),
        _ => never(),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_hanging_requests_of_a_user_who_was_answered_at_once_do_not_hold_the_host() {
    let (fixture, receiver) = (Fixture::new(), hangs_after(16));
    let publisher = fixture.publisher().await;
    let _worker = fixture.worker(&[]).await;
    fixture.decide(&vec![receiver.url("/"); 60]);
    eventually("every place to be held", async || {
        (receiver.calls().len() == 32).then_some(())
    })
    .await;
    assert_eq!(receiver.max_concurrent(), 16);
    let time = time_of_healthy(&fixture, &publisher, &receiver).await;
    assert!(time < HANGING / 2, "{time:?}");
    eventually("a failed attempt whose place was on loan", async || {
        let recalled = fixture.count("attempt_log::text LIKE '%ended early%'");
        (1..=4).contains(&recalled).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_requests_of_two_users_who_were_answered_at_once_do_not_hold_the_host() {
    let (fixture, receiver) = (Fixture::new(), hangs_after(32));
    let publisher = fixture.publisher().await;
    let _worker = fixture.worker(&[]).await;
    for _ in 0..2 {
        fixture.decide(&vec![receiver.url("/"); 60]);
    }
    eventually("every place to be held", async || {
        (receiver.calls().len() >= 48).then_some(())
    })
    .await;
    for _ in 0..5 {
        let time = time_of_healthy(&fixture, &publisher, &receiver).await;
        assert!(time < HANGING / 2, "{time:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_of_a_network_whose_accounts_keep_a_host_busy_gets_its_turn() {
    // Fast, and not.
    for (delay, at_once) in [(50, 16), (600, 8)] {
        let after = Duration::from_millis(delay);
        let (fixture, receiver) = (
            Fixture::new(),
            Receiver::start(move |_| CannedResponse::after(after)),
        );
        let publisher = fixture.publisher().await;
        for _ in 0..5 {
            fixture.decide(&vec![receiver.url("/"); 20 * at_once]);
        }
        let late = fixture.decide(&[receiver.url("/late")]).remove(0);
        let mut connection = fixture.connection();
        let later = format!(
            "UPDATE deliveries SET next_attempt = now() + interval '1 hour' WHERE encode(id, 'hex') = '{late}'"
        );
        connection.batch_execute(&later).unwrap();
        let group = "UPDATE webhooks SET lane = replace(lane, ' ', ' network/');
            UPDATE deliveries SET lane = replace(lane, ' ', ' network/')";
        connection.batch_execute(group).unwrap();
        let worker = fixture.worker(&[]).await;
        receiver.wait_for_calls(4 * at_once).await;
        let now = later.replace("now() + interval '1 hour'", "now()");
        connection.batch_execute(&now).unwrap();
        publisher.send([fixture.message_for(&late)]);
        eventually("the delivery of the other account", async || {
            let calls = receiver.calls();
            calls.iter().any(|call| call.path == "/late").then_some(())
        })
        .await;
        assert!(receiver.calls().len() < 60 * at_once, "{delay}");
        drop(worker);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_silent_ports_of_a_host_do_not_hold_it() {
    let (fixture, healthy) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let silent: Vec<_> = (0..20).map(|_| Receiver::start(|_| never())).collect();
    let publisher = fixture.publisher().await;
    let _worker = fixture.worker(&[]).await;
    let urls: Vec<_> = silent.iter().map(|receiver| receiver.url("/")).collect();
    fixture.decide(&urls);
    eventually("the silent ports to be called", async || {
        (calls(&silent) >= 12).then_some(())
    })
    .await;
    let time = time_of_healthy(&fixture, &publisher, &healthy).await;
    assert!(time < HANGING / 2, "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_silent_hosts_of_one_user_delay_no_other_user() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let silent = Receiver::start_at([0, 0, 0, 0], |_| never());
    let port = silent.address.port();
    let urls = (0..3_000).map(|n| format!("http://127.1.{}.{}:{port}/", n / 250, n % 250 + 1));
    let urls: Vec<_> = urls.collect();
    let time = time_beside(&fixture, &receiver, &urls).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_dead_name_servers_do_not_delay_a_healthy_receiver() {
    let time = time_beside_dead_name_servers(600, |_| "hooks".to_owned()).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_dead_domains_of_one_creator_do_not_delay_hosts_of_others_that_are_new() {
    let time = time_beside_dead_name_servers(3_000, |delivery| format!("new-{delivery}")).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
}

/// How long a creator's deliveries take while another creator has deliveries to a number of domains whose name servers
/// do not respond. `host` names the hosts, all of one receiver, of the six deliveries: three before, and three meanwhile.
async fn time_beside_dead_name_servers(domains: usize, host: impl Fn(usize) -> String) -> Duration {
    // Each delivery needs a connection of its own, and so a lookup.
    let closing = |_| CannedResponse {
        closes: true,
        ..CannedResponse::status(200)
    };
    let (fixture, healthy) = (Fixture::new(), Receiver::start(closing));
    let name_server = TestNameServer::start();
    let publisher = fixture.publisher().await;
    let mut settings = fixture.settings(&[("WEBHOOK_RETRY_SCHEDULE", "1h")]);
    let resolver = SystemResolver::with_name_server(name_server.address()).unwrap();
    settings.resolver = Some(Arc::new(resolver));
    let worker = run_webhook_worker(settings).await.unwrap();
    let port = healthy.address.port();
    let url = |number| format!("http://{}.up.example.net:{port}/", host(number));
    let urls = [url(0), url(1), url(2), url(3), url(4), url(5)];
    let [first, second, third, fourth, fifth, sixth] = urls.each_ref().map(String::as_str);
    let before = [first, second, third];
    let time = time_to_deliver_to(&fixture, &publisher, &healthy, before).await;
    assert!(time < Duration::from_secs(1), "{time:?}");
    let dead = (0..2 * domains).map(|n| format!("http://hooks.dead-{}.example/", n % domains));
    fixture.decide(&dead.collect::<Vec<_>>());
    eventually("all lookups to be used", async || {
        let asked: HashSet<_> = name_server.queries().into_iter().collect();
        (asked.len() >= 128).then_some(())
    })
    .await;
    let meanwhile = [fourth, fifth, sixth];
    let time = time_to_deliver_to(&fixture, &publisher, &healthy, meanwhile).await;
    assert!(worker.stop(STOP_TIMEOUT).await);
    time
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_workers_together_respect_the_limit_of_a_host() {
    let slow = |_| CannedResponse::after(Duration::from_millis(20));
    let (fixture, receiver) = (Fixture::new(), Receiver::start(slow));
    fixture.decide(&vec![receiver.url("/"); 300]);
    let limit = [("WEBHOOK_MAX_IN_FLIGHT_PER_HOST", "3")];
    let workers = [fixture.worker(&limit).await, fixture.worker(&limit).await];
    fixture.wait_for_count(300, "status = 'sent'").await;
    assert_eq!(receiver.calls().len(), 300);
    assert_eq!(receiver.max_concurrent(), 3);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_hosts_than_concurrent_attempts_are_all_served() {
    let fixture = Fixture::new();
    let receivers: Vec<_> = (1..=12)
        .map(|host| {
            let slow = |_| CannedResponse::after(Duration::from_millis(5));
            Receiver::start_at([127, 0, 1, host], slow)
        })
        .collect();
    let urls = (0..600).map(|n: usize| receivers[n % 12].url("/"));
    fixture.decide(&urls.collect::<Vec<_>>());
    let mut settings = fixture.settings(&[]);
    settings.max_in_flight = 8;
    let _worker = run_webhook_worker(settings).await.unwrap();
    fixture.wait_for_count(600, "status = 'sent'").await;
    assert!(
        receivers
            .iter()
            .all(|receiver| receiver.calls().len() == 50)
    );
}
