//! Duplicate messages, killed and stopped workers, and outages.

use std::time::{Duration, Instant};

use demo_engine::{Control, ControlChange};
use messaging::{BrokerSettings, Message, Publisher};
use telemetry::RequestContext;
use testkit::eventually;
use tokio_util::sync::CancellationToken;
use user_service::deletions::QUEUE;

use crate::audit::pseudonym;
use crate::deletion_worker::fixture::{ErasureResponse, Fixture};

/// How long broker and database are unavailable: longer than the lease of the job, and than a wait for a connection.
const OUTAGE: Duration = Duration::from_secs(4);
const EMAIL: &str = "Ada.Lovelace@Example.com";
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn duplicate_and_invalid_messages_do_no_harm() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_millis(30),
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let shutdown = CancellationToken::new();
    let broker = BrokerSettings {
        url: fixture.broker.url(),
    };
    let (publisher, publishing) = Publisher::new(broker, QUEUE, shutdown.clone());
    let publishing = tokio::spawn(publishing);
    let workers = [fixture.worker(&[]).await, fixture.worker(&[]).await];
    let job = fixture.delete(ada);
    let nonsense = ["", "nonsense", "000000000000000000000000"];
    for _ in 0..50 {
        publisher.send([Message::new(job, RequestContext::fresh())]);
        publisher.send(nonsense.map(|text| Message::new(text, RequestContext::fresh())));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = fixture.ended(job).await;
    assert_eq!(
        (
            ended.status.as_str(),
            ended.steps_done,
            ended.failed_attempts
        ),
        ("completed", 8, 0)
    );
    assert_eq!(
        fixture.engine_calls(ada).await.len(),
        5,
        "each operation must be called once"
    );
    assert_eq!(fixture.people_tasks.calls().len(), 2);
    for worker in workers {
        assert!(worker.stop(STOP_TIMEOUT).await);
    }
    shutdown.cancel();
    publishing.await.unwrap();
}

#[actix_web::test]
async fn another_worker_continues_after_one_is_killed_during_a_step() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_secs(3),
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let job = fixture.delete(ada);
    let killed = fixture.process(&[("DELETE_LEASE", "1s")]);
    eventually("the step in flight", || async {
        fixture.is_claimed(job).then_some(())
    })
    .await;
    drop(killed);
    assert_eq!(fixture.job(job).steps_done, 0);

    let no_delay = ControlChange {
        delay: Some(Duration::ZERO),
        ..ControlChange::default()
    };
    fixture.engine.change_control(&no_delay);
    let worker = fixture.worker(&[("DELETE_LEASE", "1s")]).await;
    let ended = fixture.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 8));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn the_job_of_a_killed_worker_does_not_wait_for_its_lease() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_secs(3),
        ..Control::default()
    })
    .await;
    let job = fixture.delete(fixture.user(EMAIL));
    let killed = fixture.process(&[("DELETE_LEASE", "1h")]);
    eventually("the step in flight", || async {
        fixture.is_claimed(job).then_some(())
    })
    .await;
    let worker = fixture.worker(&[("DELETE_LEASE", "1h")]).await;
    let no_delay = ControlChange {
        delay: Some(Duration::ZERO),
        ..ControlChange::default()
    };
    fixture.engine.change_control(&no_delay);
    drop(killed);
    let ended = fixture.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 8));
    worker.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_worker_killed_at_any_moment_loses_nothing() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_millis(40),
        fail: 1,
        ..Control::default()
    })
    .await;
    let users: Vec<_> = (0..3)
        .map(|n| fixture.user(&format!("user{n}@example.com")))
        .collect();
    fixture
        .people_tasks
        .will_respond(&[ErasureResponse::More; 4]);
    let jobs: Vec<_> = users.iter().map(|user| fixture.delete(*user)).collect();
    let (started, mut kills) = (Instant::now(), 0);
    let mut done = vec![0; jobs.len()];
    while jobs
        .iter()
        .any(|job| fixture.job(*job).status == "in-progress")
    {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "killed {kills} times"
        );
        let worker = fixture.process(&[("DELETE_LEASE", "1s")]);
        // On a busy machine a process needs longer to start than the first ones get.
        let longest = 900 + 50 * kills;
        tokio::time::sleep(Duration::from_millis(rand::random_range(100..longest))).await;
        drop(worker);
        kills += 1;
        for (job, before) in jobs.iter().zip(&mut done) {
            let now = fixture.job(*job).steps_done;
            assert!(now >= *before, "progress must not decrease");
            *before = now;
        }
    }
    for (job, user) in jobs.iter().zip(&users) {
        let ended = fixture.job(*job);
        assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 8));
        assert_eq!(fixture.rows_of(&user.to_string()).len(), 1);
        let logged = fixture
            .database
            .rows_that_hold("users", &pseudonym(&user.to_string()));
        assert_eq!(logged.len(), 1, "the user must be deleted once: {logged:?}");
    }
    assert_eq!(
        fixture.database.rows_that_hold("users", "@example.com"),
        Vec::<String>::new()
    );
    assert!(kills > 2, "no worker was killed while it worked");
}

#[actix_web::test]
async fn a_stopping_worker_releases_its_job_to_another() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let ada = fixture.user(EMAIL);
    let job = fixture.delete(ada);
    let worker = fixture.worker(&[]).await;
    fixture
        .job_that(job, "the first step", |job| job.steps_done >= 1)
        .await;
    assert!(worker.stop(STOP_TIMEOUT).await);
    let stopped = fixture.job(job);
    assert_eq!(stopped.status, "in-progress");
    assert!(!fixture.is_claimed(job));
    let (started, other) = (Instant::now(), fixture.worker(&[]).await);
    assert_eq!(fixture.ended(job).await.status, "completed");
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "the job must not wait for the lease to end"
    );
    assert_eq!(
        fixture.engine_calls(ada).await.len(),
        5,
        "no step may run twice"
    );
    other.stop(STOP_TIMEOUT).await;
}

#[actix_web::test]
async fn a_job_continues_after_outages_of_broker_and_database() {
    let fixture = Fixture::with_engine(Control {
        delay: Duration::from_millis(200),
        ..Control::default()
    })
    .await;
    let job = fixture.delete(fixture.user(EMAIL));
    let worker = fixture
        .worker(&[("DELETE_LEASE", "1s"), ("DATABASE_TIMEOUT", "3s")])
        .await;
    fixture
        .job_that(job, "the first step", |job| job.steps_done >= 1)
        .await;
    fixture.broker.set_reachable(false);
    fixture.database.set_reachable(false);
    tokio::time::sleep(OUTAGE).await;
    fixture.database.set_reachable(true);
    fixture.broker.set_reachable(true);
    assert_eq!(fixture.ended(job).await.status, "completed");
    assert!(worker.stop(STOP_TIMEOUT).await);
}
