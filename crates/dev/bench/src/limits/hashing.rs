//! bcrypt alone.

use std::time::{Duration, Instant};

use anyhow::Context as _;

/// The default cost of the user service.
pub(crate) const COST: u32 = 12;
/// As many as the user service has on two cores.
pub(crate) const THREADS: usize = 2;
const PASSWORD: &str = "a long enough password for a benchmark";

/// Hashes on [`THREADS`] threads for at least `time`. Returns the hashes per second.
pub(crate) async fn hashes_per_second(time: Duration) -> anyhow::Result<f64> {
    let start = Instant::now();
    let threads: Vec<_> = (0..THREADS)
        .map(|_| tokio::task::spawn_blocking(move || hash_until(start + time)))
        .collect();
    let mut rate = 0.0;
    for thread in threads {
        rate += thread.await.context("hashing")??;
    }
    Ok(rate)
}

/// Returns the hashes per second of one thread.
fn hash_until(end: Instant) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut hashes = 0.0;
    while Instant::now() < end {
        bcrypt::hash(PASSWORD, COST)?;
        hashes += 1.0;
    }
    Ok(hashes / start.elapsed().as_secs_f64())
}
