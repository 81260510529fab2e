use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const INTERVAL: Duration = Duration::from_secs(5);

pub(crate) async fn run_upkeep(
    metrics: PrometheusHandle,
    dropped_lines: impl Fn() -> u64,
    interval: Duration,
    shutdown: CancellationToken,
) {
    let mut reported = 0;
    loop {
        // A histogram keeps every value, in 16 bytes, until it is added to a bucket here or by a scrape.
        metrics.run_upkeep();
        let dropped = dropped_lines();
        metrics::counter!("log_lines_dropped_total").absolute(dropped);
        if dropped > reported {
            reported = dropped;
            tracing::warn!(
                dropped,
                "the log is not read fast enough and has lost lines"
            );
        }
        let pause = tokio::time::sleep(interval);
        if shutdown.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use procfs::process::Process;
    use tokio::time::{sleep, timeout};
    use tokio_util::sync::CancellationToken;

    use super::run_upkeep;

    const MIB: u64 = 1024 * 1024;

    fn memory() -> u64 {
        let status = Process::myself().unwrap().status().unwrap();
        status.vmrss.unwrap() * 1024
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_process_that_is_not_scraped_does_not_keep_the_values_of_histograms() {
        let metrics = telemetry::metrics_recorder();
        let (interval, shutdown) = (Duration::from_millis(1), CancellationToken::new());
        let upkeep = run_upkeep(metrics, || 0, interval, shutdown.clone());
        tokio::spawn(upkeep);
        let before = memory();
        let added_to_buckets = || async {
            while memory().saturating_sub(before) > 32 * MIB {
                sleep(Duration::from_millis(10)).await;
            }
        };
        // The values would take 80 MB.
        for _ in 0..50 {
            for _ in 0..100_000 {
                metrics::histogram!("upkeep_seconds").record(0.1);
            }
            let limit = Duration::from_secs(10);
            timeout(limit, added_to_buckets()).await.unwrap();
        }
        shutdown.cancel();
    }
}
