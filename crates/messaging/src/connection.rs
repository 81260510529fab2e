use std::future::Future;
use std::time::{Duration, Instant};

use app_config::{Reader, SettingValue};
use futures_util::Stream;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties, Event};
use telemetry::Outage;
use tokio_util::sync::CancellationToken;
use values::Secret;

use crate::error::{Error, with_timeout};
use crate::queue::Queue;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Closing a connection is a courtesy to the broker, so a process that stops does not wait long for it.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest frame in bytes, unless the URL has another `frame_max`: the smallest that every broker accepts. lapin keeps
/// buffers for 64 frames of this size, and longer messages are sent in several frames.
const FRAME_MAX: u32 = 8 * 1024;

app_config::settings! {
    /// The address of the broker.
    pub struct BrokerSettings {
        /// The AMQP URL.
        pub url: Secret = by(read_url),
    }
}

fn read_url(reader: &mut Reader) -> Result<Secret, app_config::Error> {
    let url: AmqpUrl = reader.required(
        "AMQP_URL",
        "RabbitMQ's URL, `amqp://user:password@host:5672/%2f`, or `amqps://…:5671/%2f` for TLS.",
    )?;
    Ok(url.0)
}

/// A URL that lapin can read. Of others, its errors show the password.
struct AmqpUrl(Secret);

impl SettingValue for AmqpUrl {
    const ALLOWED: &'static str = "a URL that starts with amqp:// or amqps://";
    const EXAMPLE: &'static str = "amqp://user:password@localhost:5672/%2f";
    const SECRET: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.parse::<AMQPUri>() {
            Ok(_) => Ok(Self(Secret::new(text))),
            Err(_) => Err("it is not the URL of a broker".to_owned()),
        }
    }
}

/// A connection with one channel, whose queues are declared.
pub(crate) struct BrokerConnection {
    pub(crate) channel: Channel,
    connection: Connection,
}

impl BrokerConnection {
    pub(crate) async fn open(settings: &BrokerSettings, queue: Queue) -> Result<Self, Error> {
        let url = settings.url.expose();
        let mut uri: AMQPUri = url.parse().map_err(|_| Error::InvalidUrl)?;
        uri.query.frame_max.get_or_insert(FRAME_MAX);
        let connecting = Connection::connect_uri(uri, ConnectionProperties::default());
        let connection = with_timeout(connecting).await?;
        queue.declare(&connection).await?;
        let channel = with_timeout(connection.create_channel()).await?;
        Ok(Self {
            channel,
            connection,
        })
    }

    /// What the broker says about the connection from now on.
    pub(crate) fn events(&self) -> impl Stream<Item = Event> + Send + 'static {
        self.connection.events_listener()
    }

    pub(crate) async fn close(self) {
        // Closing fails when the connection is already broken, which does not matter here.
        let closing = self.connection.close(200, "done".into());
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }
}

/// Runs `session` on a new connection whenever the last one ended, until it is cancelled.
pub(crate) async fn supervise<R: Future<Output = Result<(), Error>>>(
    role: &'static str,
    settings: &BrokerSettings,
    queue: Queue,
    shutdown: &CancellationToken,
    mut session: impl FnMut(BrokerConnection) -> R,
) {
    let losses = metrics::counter!("broker_connection_losses_total", "role" => role);
    losses.increment(0);
    let outage = Outage::new(match role {
        "publisher" => "no connection to the broker for publishing",
        _ => "no connection to the broker for consuming",
    });
    let mut pause = FIRST_PAUSE;
    while !shutdown.is_cancelled() {
        let opening = BrokerConnection::open(settings, queue);
        let Some(opened) = shutdown.run_until_cancelled(opening).await else {
            return;
        };
        let outcome = match opened {
            Ok(connection) => {
                outage.end();
                let started = Instant::now();
                let outcome = session(connection).await;
                if started.elapsed() > MAX_PAUSE {
                    pause = FIRST_PAUSE;
                }
                outcome
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            losses.increment(1);
            outage.fail(&error);
        }
        let pausing = tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..1.0)));
        shutdown.run_until_cancelled(pausing).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use app_config::Settings as _;
    use testkit::{PrivateCa, TestBroker, tls_in_front_of, with_private_ca};
    use url::Url;

    use super::*;

    #[test]
    fn what_is_not_the_url_of_a_broker_is_refused_and_not_shown() {
        let read = |url: &str| {
            let mut reader = Reader::from_pairs([("AMQP_URL", url)]).unwrap();
            BrokerSettings::read(&mut reader)
        };
        for url in [
            "amqp://u:hidden@rabbitmq:5672/%2f",
            "amqps://u:hidden@rabbitmq/vhost?heartbeat=5",
            "amqp://rabbitmq",
        ] {
            assert_eq!(read(url).unwrap().url.expose(), url);
        }
        for wrong in [
            "rabbitmq:5672",
            "rabbitmq",
            "u:hidden@rabbitmq:5672",
            "http://u:hidden@rabbitmq:5672",
            "amqp://u:hidden/@rabbitmq:5672",
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.starts_with("AMQP_URL is (a secret"), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }

    /// The URL of a broker through a port with TLS.
    async fn over_tls(broker: &TestBroker, config: rustls::ServerConfig) -> BrokerSettings {
        let mut url = Url::parse(broker.url().expose()).unwrap();
        let plain: SocketAddr = ([127, 0, 0, 1], url.port().unwrap()).into();
        let port = tls_in_front_of(plain, config, false).await;
        url.set_scheme("amqps").unwrap();
        url.set_host(Some("localhost")).unwrap();
        url.set_port(Some(port)).unwrap();
        BrokerSettings {
            url: Secret::new(url.as_str()),
        }
    }

    #[tokio::test]
    async fn amqps_is_encrypted_and_trusts_the_certificates_of_the_system() {
        let test =
            "connection::tests::amqps_is_encrypted_and_trusts_the_certificates_of_the_system";
        let Some(ca) = with_private_ca(test) else {
            return;
        };
        let (broker, queue) = (TestBroker::new(), Queue::new("over-tls"));
        let trusted = over_tls(&broker, ca.server("localhost")).await;
        let connection = BrokerConnection::open(&trusted, queue).await.unwrap();
        connection.close().await;
        for (config, fault) in [
            (PrivateCa::new().server("localhost"), "unknown issuer"),
            (ca.server("other.example"), "host name mismatch"),
            (ca.server_until("localhost", 2001), "it has expired"),
        ] {
            let settings = over_tls(&broker, config).await;
            let opened = BrokerConnection::open(&settings, queue).await;
            let error = opened.err().unwrap().to_string();
            let expected = format!("the broker's certificate was refused: {fault}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
