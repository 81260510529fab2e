use std::future::Future;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until `poll` returns a value. Panics after 30 seconds with a message that contains `what`.
pub async fn eventually<T, F, R>(what: &str, mut poll: F) -> T
where
    F: FnMut() -> R,
    R: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(
            started.elapsed() < LIMIT,
            "{what}: not within {} s",
            LIMIT.as_secs()
        );
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
