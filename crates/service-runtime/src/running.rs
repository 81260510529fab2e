use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use http_kit::Health;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of a running service or worker, and the way to stop them.
#[derive(Debug, Clone, Default)]
pub struct Running {
    /// The address that it listens on, if it serves HTTP.
    pub address: Option<SocketAddr>,
    /// The readiness checks.
    pub health: Health,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    /// A process without any tasks yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The token that is cancelled when the process must stop. Tasks then finish what they have
    /// started and take no new work.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Starts a task that ends by itself when [`Running::shutdown`] is cancelled.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

    /// Stops every task; `false` if some did not finish within the grace period.
    pub async fn stop(&self, grace: Duration) -> bool {
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
