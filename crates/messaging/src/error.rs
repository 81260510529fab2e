use std::future::Future;
use std::time::Duration;

/// The longest wait for any single response of the broker.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why an operation on the broker failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection or the channel failed.
    #[error("the broker refused the operation or the connection failed")]
    Broker(#[from] lapin::Error),
    /// The broker did not respond in time.
    #[error("the broker did not respond in time")]
    Timeout,
    /// The broker did not accept a message.
    #[error("the broker did not accept a message; its queue may be full")]
    Refused,
}

/// Waits for a response of the broker, for a limited time.
pub(crate) async fn with_timeout<T>(
    response: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(RESPONSE_TIMEOUT, response).await {
        Ok(response) => Ok(response?),
        Err(_) => Err(Error::Timeout),
    }
}
