//! Publishing while the broker accepts no messages, because its memory or its disk is almost full.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use messaging::{BrokerSettings, Message, Publisher, Queue};
use telemetry::RequestContext;
use testkit::{TestBroker, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const QUEUE: Queue = Queue::new("test.alarms");

/// The methods `connection.blocked`, whose reason is "low on memory", and `connection.unblocked`, as frames of channel 0.
const BLOCKED: &[u8] = b"\x01\0\0\0\0\0\x12\0\x0a\0\x3c\x0dlow on memory\xce";
const UNBLOCKED: &[u8] = b"\x01\0\0\0\0\0\x04\0\x0a\0\x3d\xce";

/// A publisher that reaches the broker through a proxy, which sends it alarms.
struct Fixture {
    broker: TestBroker,
    publisher: Publisher,
    alarms: mpsc::Sender<&'static [u8]>,
    connections: Arc<AtomicUsize>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Fixture {
    async fn start() -> Self {
        let broker = TestBroker::new();
        let (alarms, receiver) = mpsc::channel(1);
        let connections = Arc::<AtomicUsize>::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut url = url::Url::parse(broker.url().expose()).unwrap();
        let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
        url.set_host(Some("127.0.0.1")).unwrap();
        url.set_port(Some(listener.local_addr().unwrap().port()))
            .unwrap();
        tokio::spawn(forward(
            listener,
            address,
            receiver,
            Arc::clone(&connections),
        ));
        let settings = BrokerSettings {
            url: values::Secret::new(url.as_str()),
        };
        let shutdown = CancellationToken::new();
        let (publisher, task) = Publisher::new(settings, QUEUE, shutdown.clone());
        let fixture = Self {
            broker,
            publisher,
            alarms,
            connections,
            shutdown,
            task: tokio::spawn(task),
        };
        fixture.until_connected(true).await;
        fixture
    }

    async fn until_connected(&self, connected: bool) {
        eventually("the publisher's state to change", async || {
            (self.publisher.is_connected() == connected).then_some(())
        })
        .await;
    }

    fn publish(&self, numbers: Range<usize>) {
        let message = |n: usize| Message::new(n.to_string(), RequestContext::fresh());
        self.publisher.send(numbers.map(message));
    }

    /// The messages in the queue. The broker may show one twice that it puts back after it was read.
    fn waiting(&self) -> BTreeSet<String> {
        let messages = self.broker.waiting().into_iter();
        let bodies =
            messages.filter_map(|message| Some(message.get("payload")?.as_str()?.to_owned()));
        bodies.collect()
    }

    async fn until_waiting(&self, numbers: Range<usize>) {
        let all = bodies(numbers);
        eventually("the messages to arrive", async || {
            (self.waiting() == all).then_some(())
        })
        .await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        let stopping = tokio::time::timeout(Duration::from_secs(9), self.task);
        stopping.await.unwrap().unwrap();
    }
}

fn bodies(numbers: Range<usize>) -> BTreeSet<String> {
    numbers.map(|number| number.to_string()).collect()
}

/// Forwards connections to the broker, one after the other, and sends alarms to the client.
async fn forward(
    listener: TcpListener,
    broker: String,
    mut alarms: mpsc::Receiver<&'static [u8]>,
    connections: Arc<AtomicUsize>,
) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        connections.fetch_add(1, Ordering::SeqCst);
        let server = TcpStream::connect(&broker).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let mut buffer = vec![0; 64 * 1024];
        loop {
            tokio::select! {
                Some(alarm) = alarms.recv() => to_client.write_all(alarm).await.unwrap(),
                read = from_server.read(&mut buffer) => {
                    let Ok(length @ 1..) = read else { break };
                    let sent = to_client.write_all(buffer.get(..length).unwrap()).await;
                    if sent.is_err() {
                        break;
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn messages_wait_for_the_end_of_an_alarm_on_the_same_connection() {
    let fixture = Fixture::start().await;
    fixture.publish(0..1);
    fixture.until_waiting(0..1).await;
    for sent in [1, 4] {
        fixture.alarms.send(BLOCKED).await.unwrap();
        fixture.until_connected(false).await;
        let transient = Message::transient("transient".to_owned(), RequestContext::fresh());
        fixture.publisher.send([transient]);
        fixture.publish(sent..sent + 3);
        // Earlier ones may be missing while the broker puts them back.
        assert!(fixture.waiting().is_disjoint(&bodies(sent..sent + 3)));
        fixture.alarms.send(UNBLOCKED).await.unwrap();
        fixture.until_connected(true).await;
        fixture.until_waiting(0..sent + 3).await;
        // It was sent first, and dropped: it may be long, and nothing depends on it.
        assert!(!fixture.waiting().contains("transient"));
    }
    assert_eq!(fixture.connections.load(Ordering::SeqCst), 1);
    fixture.stop().await;
}

#[tokio::test]
async fn a_publisher_stops_in_time_during_an_alarm() {
    let fixture = Fixture::start().await;
    fixture.alarms.send(BLOCKED).await.unwrap();
    fixture.until_connected(false).await;
    fixture.publish(0..3);
    fixture.stop().await;
}

#[tokio::test]
async fn a_connection_that_is_lost_during_an_alarm_is_replaced() {
    let fixture = Fixture::start().await;
    fixture.alarms.send(BLOCKED).await.unwrap();
    fixture.until_connected(false).await;
    eventually("the publisher to connect again", async || {
        // The broker lists a new connection with a delay.
        fixture.broker.cut_connections();
        fixture.publisher.is_connected().then_some(())
    })
    .await;
    fixture.publish(3..4);
    fixture.until_waiting(3..4).await;
    fixture.stop().await;
}
