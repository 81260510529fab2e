//! How many requests fit into a time.

use std::net::SocketAddr;
use std::time::Duration;

use crate::http::load::{Pace, send};
use crate::report::statistics;

/// How many requests first show how many fit into a time.
const SAMPLE: usize = 4;
/// How many then show it.
const SAMPLES: usize = 1_000;

/// Returns how often a request can be repeated in about `time`, as the rate of some shows, but at most `most` times.
///
/// # Errors
/// When a call fails or returns an error status.
pub(crate) async fn fitting(
    address: SocketAddr,
    request: &[u8],
    pace: Pace,
    time: Duration,
    most: usize,
) -> anyhow::Result<usize> {
    let mut count = SAMPLE;
    // The first requests open connections, so the rate is that of more, if they are fast.
    for largest in [SAMPLES, most] {
        let calls = send(address, &vec![request; count], pace).await?;
        let fitting = whole(statistics::rate(&calls) * time.as_secs_f64());
        count = fitting.clamp(SAMPLE, largest.max(SAMPLE));
    }
    Ok(count)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate times a duration is not negative, and a number of requests fits"
)]
fn whole(count: f64) -> usize {
    count as usize
}
