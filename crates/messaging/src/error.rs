use std::future::Future;
use std::time::Duration;

use telemetry::CertificateFault;
use tokio_util::sync::CancellationToken;

/// The longest wait for any single response of the broker.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The same once the process stops: what the broker missed, it delivers again.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Why an operation on the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection or the channel failed.
    #[error("the broker refused the operation or the connection failed")]
    Broker(#[source] lapin::Error),
    /// The broker has a certificate that was refused.
    #[error("the broker's certificate was refused: {0}")]
    Certificate(CertificateFault),
    /// The address of the broker cannot be read. What was given is not shown, because it may contain a password.
    #[error(
        "`AMQP_URL` is not an address of RabbitMQ; expected `amqp://user:password@host:5672/%2f` or `amqps://…:5671/%2f`"
    )]
    InvalidUrl,
    /// The broker did not respond in time.
    #[error("the broker did not respond in time")]
    Timeout,
    /// The broker did not accept a message.
    #[error("the broker did not accept a message; its queue may be full")]
    Refused,
}

impl From<lapin::Error> for Error {
    fn from(error: lapin::Error) -> Self {
        match CertificateFault::find(&error) {
            Some(fault) => Self::Certificate(fault),
            None => Self::Broker(error),
        }
    }
}

pub(crate) async fn with_timeout<T>(
    response: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(RESPONSE_TIMEOUT, response).await {
        Ok(response) => Ok(response?),
        Err(_) => Err(Error::Timeout),
    }
}

/// Waits for an operation, but not for long once `shutdown` is cancelled.
pub(crate) async fn with_shutdown<T>(
    shutdown: &CancellationToken,
    operation: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        result = operation => result,
        () = grace_after(shutdown, SHUTDOWN_TIMEOUT) => Err(Error::Timeout),
    }
}

pub(crate) async fn grace_after(shutdown: &CancellationToken, grace: Duration) {
    shutdown.cancelled().await;
    tokio::time::sleep(grace).await;
}
