use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http_kit::Health;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of a running service or worker, and the way to stop them.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("Running {{ .. }}")]
pub struct Running {
    /// The address that it listens on, if it serves HTTP.
    pub address: Option<SocketAddr>,
    /// The readiness checks.
    pub health: Health,
    draining: CancellationToken,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    gauges: Arc<Mutex<Vec<SetGauges>>>,
}

type SetGauges = Box<dyn Fn() + Send>;

impl Running {
    /// A process without any tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancelled when the process must stop. Tasks then finish what they have started and take no new work.
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// The token that is cancelled when clients must move to other replicas.
    pub fn draining(&self) -> CancellationToken {
        self.draining.clone()
    }

    /// Makes a process that serves HTTP unready, and gives clients time to move to other replicas: each connection is
    /// closed with its next response.
    pub async fn drain(&self, delay: Duration) {
        self.health.set_stopping();
        self.draining.cancel();
        if self.address.is_some() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Adds a function that sets gauges before each response of `/metrics`. It must not block.
    pub fn on_scrape(&self, set: impl Fn() + Send + 'static) {
        self.gauges.lock().push(Box::new(set));
    }

    pub(crate) fn set_gauges(&self) {
        self.gauges.lock().iter().for_each(|set| set());
    }

    /// Starts a task that ends by itself when [`Running::shutdown`] is cancelled. If it panics, everything stops:
    /// a process without one of its tasks would look healthy and not do its work.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown();
        self.tasks.spawn(async move {
            if AssertUnwindSafe(task).catch_unwind().await.is_err() {
                tracing::error!("a background task panicked; the process stops");
                shutdown.cancel();
            }
        });
    }

    /// Stops every task, also if the process was not drained; `false` if some did not finish within the grace period.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.draining.cancel();
        self.shutdown.cancel();
        self.tasks.close();
        tokio::time::timeout(grace, self.tasks.wait()).await.is_ok()
    }

    /// Waits until every task has ended. Without [`Running::stop`] this means that they failed.
    pub async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Running;

    #[tokio::test]
    async fn a_panic_of_a_task_stops_the_others() {
        let running = Running::new();
        let shutdown = running.shutdown();
        running.spawn(async move { shutdown.cancelled().await });
        running.spawn(async { panic!("a bug") });
        running.ended().await;
        assert!(running.shutdown().is_cancelled());
    }

    #[tokio::test]
    async fn those_who_wait_are_told_that_a_process_stops_that_is_not_drained() {
        let running = Running::new();
        let draining = running.draining();
        running.spawn(async move { draining.cancelled().await });
        assert!(running.stop(Duration::from_secs(60)).await);
    }
}
