//! What befalls a deletion worker: repeated messages, ends of every sort, and outages around it.

use std::time::{Duration, Instant};

use demo_engine::{Control, ControlChange};
use messaging::{BrokerSettings, Message, Publisher};
use telemetry::RequestContext;
use testkit::eventually;
use tokio_util::sync::CancellationToken;
use user_service::deletions::QUEUE;

use crate::audit::pseudonym;
use crate::deletion_worker_stage::Stage;

const EMAIL: &str = "Ada.Lovelace@Example.com";
const GRACE: Duration = Duration::from_secs(20);

#[actix_web::test]
async fn messages_that_come_again_and_again_do_no_harm() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_millis(30),
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let shutdown = CancellationToken::new();
    let broker = BrokerSettings {
        url: stage.broker.url(),
    };
    let (publisher, publishing) = Publisher::new(broker, QUEUE, shutdown.clone());
    let publishing = tokio::spawn(publishing);
    let workers = [stage.worker(&[]).await, stage.worker(&[]).await];
    let job = stage.delete(ada);
    let nonsense = ["", "nonsense", "000000000000000000000000"];
    for _ in 0..50 {
        publisher.send([Message::new(job, RequestContext::fresh())]);
        publisher.send(nonsense.map(|text| Message::new(text, RequestContext::fresh())));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = stage.ended(job).await;
    assert_eq!(
        (
            ended.status.as_str(),
            ended.steps_done,
            ended.failed_attempts
        ),
        ("completed", 8, 0)
    );
    assert_eq!(
        stage.engine_calls(ada).await.len(),
        5,
        "each call was made once"
    );
    assert_eq!(stage.people_tasks.calls().len(), 1);
    for worker in workers {
        assert!(worker.stop(GRACE).await);
    }
    shutdown.cancel();
    publishing.await.unwrap();
}

#[actix_web::test]
async fn another_worker_goes_on_when_one_is_killed_in_the_middle_of_a_step() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_secs(3),
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let job = stage.delete(ada);
    let killed = stage.process(&[("DELETE_LEASE", "1s")]);
    eventually("the step in flight", || async {
        stage.is_claimed(job).then_some(())
    })
    .await;
    drop(killed);
    assert_eq!(stage.job(job).steps_done, 0);

    let no_delay = ControlChange {
        delay: Some(Duration::ZERO),
        ..ControlChange::default()
    };
    stage.engine.change_control(&no_delay);
    let worker = stage.worker(&[("DELETE_LEASE", "1s")]).await;
    let ended = stage.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 8));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn the_job_of_a_killed_worker_does_not_wait_for_its_lease() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_secs(3),
        ..Control::default()
    })
    .await;
    let job = stage.delete(stage.user(EMAIL));
    let killed = stage.process(&[("DELETE_LEASE", "1h")]);
    eventually("the step in flight", || async {
        stage.is_claimed(job).then_some(())
    })
    .await;
    let worker = stage.worker(&[("DELETE_LEASE", "1h")]).await;
    let no_delay = ControlChange {
        delay: Some(Duration::ZERO),
        ..ControlChange::default()
    };
    stage.engine.change_control(&no_delay);
    drop(killed);
    let ended = stage.ended(job).await;
    assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 8));
    worker.stop(GRACE).await;
}

#[actix_web::test]
async fn a_worker_killed_at_any_moment_loses_nothing() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_millis(40),
        fail: 1,
        ..Control::default()
    })
    .await;
    let users: Vec<_> = (0..3)
        .map(|n| stage.user(&format!("user{n}@example.com")))
        .collect();
    stage.people_tasks.says_more(4);
    let jobs: Vec<_> = users.iter().map(|user| stage.delete(*user)).collect();
    let (started, mut kills) = (Instant::now(), 0);
    let mut done = vec![0; jobs.len()];
    while jobs
        .iter()
        .any(|job| stage.job(*job).status == "in-progress")
    {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "killed {kills} times"
        );
        let worker = stage.process(&[("DELETE_LEASE", "1s")]);
        tokio::time::sleep(Duration::from_millis(rand::random_range(100..900))).await;
        drop(worker);
        kills += 1;
        for (job, before) in jobs.iter().zip(&mut done) {
            let now = stage.job(*job).steps_done;
            assert!(now >= *before, "progress never falls");
            *before = now;
        }
    }
    for (job, user) in jobs.iter().zip(&users) {
        let ended = stage.job(*job);
        assert_eq!((ended.status.as_str(), ended.steps_done), ("completed", 8));
        assert_eq!(stage.rows_of(&user.to_string()).len(), 1);
        let logged = stage
            .database
            .rows_that_hold("users", &pseudonym(&user.to_string()));
        assert_eq!(logged.len(), 1, "it was deleted once: {logged:?}");
    }
    assert_eq!(
        stage.database.rows_that_hold("users", "@example.com"),
        Vec::<String>::new()
    );
    assert!(kills > 2, "the test must have killed somebody at work");
}

#[actix_web::test]
async fn a_stopping_worker_gives_its_job_back_and_another_goes_on_at_once() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_millis(300),
        ..Control::default()
    })
    .await;
    let ada = stage.user(EMAIL);
    let job = stage.delete(ada);
    let worker = stage.worker(&[]).await;
    stage
        .job_that(job, "the first step", |job| job.steps_done >= 1)
        .await;
    assert!(worker.stop(GRACE).await);
    let stopped = stage.job(job);
    assert_eq!(stopped.status, "in-progress");
    assert!(!stage.is_claimed(job));
    let (started, other) = (Instant::now(), stage.worker(&[]).await);
    assert_eq!(stage.ended(job).await.status, "completed");
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "no lease had to run out"
    );
    assert_eq!(
        stage.engine_calls(ada).await.len(),
        5,
        "no step was done twice"
    );
    other.stop(GRACE).await;
}

#[actix_web::test]
async fn a_job_goes_on_after_the_broker_and_the_database_were_away() {
    let stage = Stage::with_engine(Control {
        delay: Duration::from_millis(200),
        ..Control::default()
    })
    .await;
    let job = stage.delete(stage.user(EMAIL));
    let worker = stage
        .worker(&[("DELETE_LEASE", "1s"), ("DATABASE_TIMEOUT", "500ms")])
        .await;
    stage
        .job_that(job, "the first step", |job| job.steps_done >= 1)
        .await;
    stage.broker.set_reachable(false);
    stage.database.set_reachable(false);
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.database.set_reachable(true);
    stage.broker.set_reachable(true);
    assert_eq!(stage.ended(job).await.status, "completed");
    assert!(worker.stop(GRACE).await);
}
