//! Failed attempts.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbound::{Resolve, Resolved, Unresolved};
use people_task_service::run_webhook_worker;

use crate::webhook_worker::fixture::{CannedResponse, Fixture, Receiver};

#[tokio::test]
async fn failed_attempts_are_retried_by_the_schedule_until_one_succeeds() {
    let second_time = |before| CannedResponse::status(if before < 2 { 500 } else { 200 });
    let (fixture, receiver) = (Fixture::new(), Receiver::start(second_time));
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[("WEBHOOK_RETRY_SCHEDULE", "1s,2s")]).await;
    let row = fixture.wait_for_attempts(&ids[0], 1).await;
    assert_eq!(
        (row.status.as_str(), row.webhook_status.as_str()),
        ("pending", "pending")
    );
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!((row.webhook_status.as_str(), row.attempts), ("sent", 3));
    let calls = receiver.calls();
    let pauses: Vec<_> = calls
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(pauses[0] >= Duration::from_millis(800), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_millis(1_600), "{pauses:?}");
    // Each attempt has the same id and its own signature.
    assert!(calls.iter().all(|call| call.header("webhook-id") == ids[0]));
    assert_ne!(
        calls[0].header("webhook-signature"),
        calls[2].header("webhook-signature")
    );
    let codes: Vec<_> = fixture
        .attempts(&ids[0])
        .iter()
        .map(|a| a.status_code)
        .collect();
    assert_eq!(codes, [Some(500), Some(500), Some(200)]);
}

#[tokio::test]
async fn a_delivery_fails_after_its_last_attempt() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(404)),
    );
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture
        .worker(&[("WEBHOOK_RETRY_SCHEDULE", "50ms,50ms")])
        .await;
    let row = fixture.wait_for_status(&ids[0], "fail").await;
    assert_eq!((row.webhook_status.as_str(), row.attempts), ("fail", 3));
    assert_eq!(receiver.calls().len(), 3);
}

#[tokio::test]
async fn status_410_ends_a_delivery() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(410)),
    );
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[]).await;
    let row = fixture.wait_for_status(&ids[0], "fail").await;
    assert_eq!((row.webhook_status.as_str(), row.attempts), ("fail", 1));
}

#[tokio::test]
async fn a_redirect_fails_and_is_not_followed() {
    let redirect = |_| CannedResponse {
        header: Some(("location", "/elsewhere".to_owned())),
        ..CannedResponse::status(307)
    };
    let (fixture, receiver) = (Fixture::new(), Receiver::start(redirect));
    let ids = fixture.decide(&[receiver.url("/")]);
    let _worker = fixture.worker(&[("WEBHOOK_RETRY_SCHEDULE", "10ms")]).await;
    fixture.wait_for_status(&ids[0], "fail").await;
    assert_eq!(receiver.calls().len(), 2);
    let attempt = &fixture.attempts(&ids[0])[0];
    assert_eq!(attempt.status_code, Some(307));
    assert_eq!(attempt.error.as_deref(), Some("redirects are not followed"));
}

#[tokio::test]
async fn retry_after_extends_a_pause_and_never_shortens_it() {
    let throttle = |seconds: &str| CannedResponse {
        header: Some(("retry-after", seconds.to_owned())),
        ..CannedResponse::status(429)
    };
    let (hour, zero) = (throttle("9999999"), throttle("0"));
    let fixture = Fixture::new();
    let long = Receiver::start(move |_| hour.clone());
    let short = Receiver::start(move |_| zero.clone());
    let ids = fixture.decide(&[long.url("/"), short.url("/")]);
    let _worker = fixture.worker(&[("WEBHOOK_RETRY_SCHEDULE", "100s")]).await;
    let mut waits = Vec::new();
    for id in &ids {
        waits.push(fixture.wait_for_attempts(id, 1).await.next_in_ms);
    }
    waits.sort_unstable();
    assert!((79_000..=120_000).contains(&waits[0]), "{waits:?}");
    assert!((3_590_000..=3_600_000).contains(&waits[1]), "{waits:?}");
}

#[tokio::test]
async fn an_attempt_without_response_has_a_plain_reason() {
    let fixture = Fixture::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow = Receiver::start(|_| CannedResponse::after(Duration::from_secs(5)));
    let silent_url = format!("http://{}/", silent.local_addr().unwrap());
    let cases = [
        (silent_url, "timed out after 0.4 s"),
        (slow.url("/"), "timed out after 0.4 s"),
        ("http://127.0.0.1:9/".to_owned(), "connection refused"),
        (
            "http://nowhere.invalid/".to_owned(),
            "the host does not resolve",
        ),
        (
            "http://169.254.169.254/".to_owned(),
            "the host's address is not allowed",
        ),
    ];
    let limits = [
        ("WEBHOOK_RETRY_SCHEDULE", "10ms"),
        ("WEBHOOK_TIMEOUT", "400ms"),
    ];
    let mut settings = fixture.settings(&limits);
    settings.resolver = Some(Arc::new(OneThenOther(AtomicUsize::new(usize::MAX / 2))));
    let _worker = run_webhook_worker(settings).await.unwrap();
    for (url, reason) in cases {
        let ids = fixture.decide(&[&url]);
        let row = fixture.wait_for_status(&ids[0], "fail").await;
        assert_eq!(row.webhook_status, "fail");
        let attempts = fixture.attempts(&ids[0]);
        assert_eq!(attempts[0].error.as_deref(), Some(reason), "{url}");
        assert_eq!(attempts[0].status_code, None);
    }
}

/// Resolves every host to a loopback address the first time, to a link-local address the second, and to
/// none after that.
struct OneThenOther(AtomicUsize);

impl Resolve for OneThenOther {
    fn resolve(&self, _: &str) -> Resolved {
        let address = match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(vec!["127.0.0.1".parse().unwrap()]),
            1 => Ok(vec!["169.254.169.254".parse().unwrap()]),
            _ => Err(Unresolved::NoAddress),
        };
        Box::pin(async move { address })
    }
}

#[tokio::test]
async fn the_address_is_checked_at_every_connection() {
    let failing = |_| CannedResponse {
        closes: true,
        ..CannedResponse::status(500)
    };
    let (fixture, receiver) = (Fixture::new(), Receiver::start(failing));
    let ids = fixture.decide(&[format!(
        "http://rebinding.example:{}/",
        receiver.address.port()
    )]);
    let mut settings = fixture.settings(&[("WEBHOOK_RETRY_SCHEDULE", "100ms,1h")]);
    settings.resolver = Some(Arc::new(OneThenOther(AtomicUsize::new(0))));
    let _worker = run_webhook_worker(settings).await.unwrap();
    fixture.wait_for_attempts(&ids[0], 2).await;
    let attempts = fixture.attempts(&ids[0]);
    assert_eq!(attempts[0].status_code, Some(500));
    assert_eq!(
        attempts[1].error.as_deref(),
        Some("the host's address is not allowed")
    );
    assert_eq!(receiver.calls().len(), 1);
}

/// Has no capacity the first time, and resolves every host to a loopback address after that.
struct BusyAtFirst(AtomicUsize);

impl Resolve for BusyAtFirst {
    fn resolve(&self, _: &str) -> Resolved {
        let address = match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Unresolved::NotAsked),
            _ => Ok(vec!["127.0.0.1".parse().unwrap()]),
        };
        Box::pin(async move { address })
    }
}

#[tokio::test]
async fn a_lookup_that_was_not_made_is_no_attempt() {
    let (fixture, receiver) = (
        Fixture::new(),
        Receiver::start(|_| CannedResponse::status(200)),
    );
    let ids = fixture.decide(&[format!("http://busy.example:{}/", receiver.address.port())]);
    let mut settings = fixture.settings(&[("WEBHOOK_RETRY_SCHEDULE", "1h")]);
    settings.resolver = Some(Arc::new(BusyAtFirst(AtomicUsize::new(0))));
    let _worker = run_webhook_worker(settings).await.unwrap();
    let row = fixture.wait_for_status(&ids[0], "sent").await;
    assert_eq!(row.attempts, 1);
    let attempts = fixture.attempts(&ids[0]);
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].status_code, Some(200));
}
