use std::future::Future;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks again and again until there is an answer.
///
/// # Panics
/// After 30 seconds, with `what` was waited for.
pub async fn eventually<T, F, R>(what: &str, mut ask: F) -> T
where
    F: FnMut() -> R,
    R: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "waited {} s in vain for {what}",
            PATIENCE.as_secs()
        );
        tokio::time::sleep(PAUSE).await;
    }
}
