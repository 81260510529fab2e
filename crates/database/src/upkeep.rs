use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{Connection, Database, Error};

impl Database {
    /// Runs the statements of `round` again and again until it is cancelled, each time after the pause that it returned, or
    /// after `pause_after_failure`. `failing` says in the log what a failure means.
    pub async fn keep_up(
        self,
        shutdown: CancellationToken,
        failing: &'static str,
        pause_after_failure: Duration,
        round: impl Fn(&mut Connection) -> Result<Duration, Error> + Clone + Send + 'static,
    ) {
        while !shutdown.is_cancelled() {
            let pause = self.run(round.clone()).await.unwrap_or_else(|error| {
                error.warn(failing);
                pause_after_failure
            });
            shutdown.run_until_cancelled(sleep(pause)).await;
        }
    }
}
