use std::future::Future;
use std::time::Duration;

use app_config::{Reader, Settings};
use lapin::{Channel, Connection, ConnectionProperties};
use tokio_util::sync::CancellationToken;
use values::Secret;

use crate::Queue;

/// Longest wait for any single answer of the broker.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where the broker is.
#[derive(Debug, Clone)]
pub struct BrokerSettings {
    /// The AMQP url.
    pub url: Secret,
}

impl Settings for BrokerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            url: reader.required(
                "AMQP_URL",
                "RabbitMQ's url, `amqp://user:password@host:5672/%2f`.",
            )?,
        })
    }
}

/// Why the broker did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection or the channel failed.
    #[error("the broker refused or the connection broke")]
    Broker(#[from] lapin::Error),
    /// The broker did not answer in time.
    #[error("the broker did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Timeout,
    /// A message found no place in its queue.
    #[error("the broker did not take a message: is its queue full?")]
    Refused,
}

/// Waits for an answer of the broker, but not for ever.
pub(crate) async fn within<T>(
    answer: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Error::Timeout),
    }
}

/// A connection with one channel, whose queues exist.
pub(crate) struct Link {
    pub(crate) channel: Channel,
    connection: Connection,
}

impl Link {
    pub(crate) async fn open(settings: &BrokerSettings, queues: &[Queue]) -> Result<Self, Error> {
        let properties = ConnectionProperties::default();
        let connection = within(Connection::connect(settings.url.expose(), properties)).await?;
        for queue in queues {
            queue.declare(&connection).await?;
        }
        let channel = within(connection.create_channel()).await?;
        Ok(Self {
            channel,
            connection,
        })
    }

    pub(crate) async fn close(self) {
        // A connection that is broken already has nothing to close.
        let _ = within(self.connection.close(200, "done".into())).await;
    }
}

/// Runs `session` again and again, each time on a new connection, until it is cancelled.
pub(crate) async fn supervise<S, R>(
    role: &'static str,
    settings: &BrokerSettings,
    queues: &[Queue],
    shutdown: &CancellationToken,
    mut session: S,
) where
    S: FnMut(Link) -> R,
    R: Future<Output = Result<(), Error>>,
{
    let mut pause = FIRST_PAUSE;
    while !shutdown.is_cancelled() {
        let outcome = match Link::open(settings, queues).await {
            Ok(link) => {
                pause = FIRST_PAUSE;
                tracing::info!(role, "connected to the broker");
                session(link).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            metrics::counter!("broker_connection_losses_total", "role" => role).increment(1);
            tracing::warn!(role, error = ?error, pause_ms = pause.as_millis(), "no connection to the broker");
        }
        tokio::select! {
            () = tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0))) => {}
            () = shutdown.cancelled() => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
