//! Publishing and consuming with a real broker, through outages too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::{
    BrokerSettings, ConsumerConfig, DeadLetters, Disposition, Message, Publisher, Queue, consume,
};
use telemetry::RequestContext;
use testkit::{TestBroker, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const QUEUE: Queue = Queue::new("test.messages");

struct Fixture {
    broker: TestBroker,
    shutdown: CancellationToken,
    publisher: Publisher,
    received: Arc<Mutex<Vec<Message>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Fixture {
    async fn start() -> Self {
        let broker = TestBroker::new();
        let shutdown = CancellationToken::new();
        let (publisher, task) = Publisher::new(settings(&broker), QUEUE, shutdown.clone());
        let fixture = Self {
            broker,
            shutdown,
            publisher,
            received: Arc::default(),
            tasks: vec![tokio::spawn(task)],
        };
        fixture.connected().await;
        fixture
    }

    async fn connected(&self) {
        eventually("the publisher to be connected", || async {
            self.publisher.is_connected().then_some(())
        })
        .await;
    }

    /// Consumes in the background: every message is recorded, then settled as `dispose` says.
    fn consume(
        &mut self,
        dispose: impl Fn(&Message) -> Disposition + Clone + Send + Sync + 'static,
    ) {
        let received = Arc::clone(&self.received);
        let config = ConsumerConfig::new(settings(&self.broker), QUEUE, 8);
        let task = consume(config, self.shutdown.clone(), move |message| {
            let (received, dispose) = (Arc::clone(&received), dispose.clone());
            async move {
                let disposition = dispose(&message);
                received.lock().unwrap().push(message);
                disposition
            }
        });
        self.tasks.push(tokio::spawn(task));
    }

    async fn received(&self, count: usize) -> Vec<Message> {
        eventually("messages to arrive", || async {
            let received = self.received.lock().unwrap();
            (received.len() >= count).then(|| received.clone())
        })
        .await
    }

    /// Waits for a message. After an outage, earlier ones may be delivered again.
    async fn received_body(&self, body: &str) {
        eventually("the message to arrive", || async {
            let received = self.received.lock().unwrap();
            let mut bodies = received.iter().map(|message| &message.body);
            bodies.any(|received| received == body).then_some(())
        })
        .await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        for task in self.tasks {
            tokio::time::timeout(Duration::from_secs(10), task)
                .await
                .unwrap()
                .unwrap();
        }
    }
}

fn settings(broker: &TestBroker) -> BrokerSettings {
    BrokerSettings { url: broker.url() }
}

fn message(id: &str) -> Message {
    Message::new(id, RequestContext::fresh())
}

#[tokio::test]
async fn a_message_arrives_with_the_request_that_caused_it() {
    let mut fixture = Fixture::start().await;
    fixture.consume(|_| Disposition::Done);
    let sent = message("abc");
    fixture.publisher.send([sent.clone()]);
    let received = fixture.received(1).await.remove(0);
    assert_eq!(received.body, "abc");
    assert_eq!(received.context.request_id, sent.context.request_id);
    assert_eq!(
        received.context.trace.trace_id(),
        sent.context.trace.trace_id()
    );
    fixture.stop().await;
}

#[tokio::test]
async fn messages_of_many_frames_arrive_whole_and_in_order() {
    let mut fixture = Fixture::start().await;
    let sent: Vec<_> = (0..20).map(|n| n.to_string().repeat(n * 5_000)).collect();
    fixture
        .publisher
        .send(sent.iter().map(|body| message(body)));
    fixture.consume(|_| Disposition::Done);
    let received = fixture.received(sent.len()).await;
    assert!(received.into_iter().map(|message| message.body).eq(sent));
    fixture.stop().await;
}

#[tokio::test]
async fn a_requeued_message_is_redelivered_and_a_rejected_one_is_not() {
    let mut fixture = Fixture::start().await;
    let tries = Arc::new(AtomicUsize::new(0));
    fixture.consume(move |message| match message.body.as_str() {
        "invalid" => Disposition::Reject,
        _ if tries.fetch_add(1, Ordering::SeqCst) < 2 => Disposition::Requeue,
        _ => Disposition::Done,
    });
    fixture
        .publisher
        .send([message("invalid"), message("requeued")]);
    let mut ids: Vec<_> = fixture
        .received(4)
        .await
        .into_iter()
        .map(|m| m.body)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, ["invalid", "requeued", "requeued", "requeued"]);
    fixture.stop().await;
}

#[tokio::test]
async fn publisher_and_consumer_reconnect_after_an_outage() {
    let mut fixture = Fixture::start().await;
    fixture.consume(|_| Disposition::Done);
    fixture.publisher.send([message("before")]);
    fixture.received(1).await;

    fixture.broker.set_reachable(false);
    eventually("the publisher to be disconnected", || async {
        fixture.broker.cut_connections();
        (!fixture.publisher.is_connected()).then_some(())
    })
    .await;
    fixture.broker.set_reachable(true);
    fixture.connected().await;
    fixture.publisher.send([message("after")]);
    fixture.received_body("after").await;
    fixture.stop().await;
}

#[tokio::test]
async fn shutdown_waits_for_handlers_in_flight() {
    let mut fixture = Fixture::start().await;
    let (started, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let release = CancellationToken::new();
    let config = ConsumerConfig::new(settings(&fixture.broker), QUEUE, 8);
    let (s, f, r) = (Arc::clone(&started), Arc::clone(&finished), release.clone());
    let consuming = consume(config, fixture.shutdown.clone(), move |_| {
        let (s, f, r) = (Arc::clone(&s), Arc::clone(&f), r.clone());
        async move {
            s.fetch_add(1, Ordering::SeqCst);
            r.cancelled().await;
            f.fetch_add(1, Ordering::SeqCst);
            Disposition::Done
        }
    });
    fixture.tasks.push(tokio::spawn(consuming));
    fixture.publisher.send([message("slow")]);
    eventually("the handler to start", || async {
        (started.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    fixture.shutdown.cancel();
    release.cancel();
    fixture.stop().await;
    assert_eq!(finished.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_message_whose_handler_panics_twice_is_a_dead_letter_and_delays_no_other() {
    let mut fixture = Fixture::start().await;
    let panics = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&panics);
    fixture.consume(move |message| {
        if message.body.starts_with("poison") {
            count.fetch_add(1, Ordering::SeqCst);
            panic!("a bug");
        }
        Disposition::Done
    });
    // More than the consumer may hold unsettled.
    let poison = (0..20).map(|n| message(&format!("poison-{n}")));
    fixture.publisher.send(poison.chain([message("healthy")]));
    assert_eq!(fixture.received(1).await[0].body, "healthy");
    let settings = settings(&fixture.broker);
    let letters = DeadLetters::open(&settings, QUEUE).await.unwrap();
    eventually("the others to be dead letters", async || {
        (letters.depth().await.unwrap() == 20).then_some(())
    })
    .await;
    assert_eq!(panics.load(Ordering::SeqCst), 40);
    letters.close().await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_consumer_of_broadcasts_gets_messages_again_after_their_exchange_was_deleted() {
    const BROADCAST: Queue = Queue::broadcast("test.broadcast");
    let (broker, shutdown) = (TestBroker::new(), CancellationToken::new());
    let (publisher, publishing) = Publisher::new(settings(&broker), BROADCAST, shutdown.clone());
    let config = ConsumerConfig::new(settings(&broker), BROADCAST, 8);
    let connected = Arc::clone(&config.connected);
    let received = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&received);
    let consuming = consume(config, shutdown.clone(), move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Disposition::Done }
    });
    let tasks = [tokio::spawn(publishing), tokio::spawn(consuming)];
    eventually("both to be connected", async || {
        (publisher.is_connected() && connected.load(Ordering::Acquire)).then_some(())
    })
    .await;
    broker.delete_exchange(BROADCAST.name());
    eventually("a message to arrive", async || {
        publisher.send([message("later")]);
        (received.load(Ordering::SeqCst) > 0).then_some(())
    })
    .await;
    shutdown.cancel();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Forwards one connection to the broker. What the broker sends is dropped once `muted` is cancelled.
async fn forward(listener: TcpListener, broker: String, muted: CancellationToken) {
    let (client, _) = listener.accept().await.unwrap();
    let server = TcpStream::connect(broker).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
        if !muted.is_cancelled() {
            let read = buffer.get(..length).unwrap();
            to_client.write_all(read).await.unwrap();
        }
    }
}

/// A broker that can be muted.
async fn muted_broker(broker: &TestBroker) -> (BrokerSettings, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut url = url::Url::parse(broker.url().expose()).unwrap();
    let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(port)).unwrap();
    let muted = CancellationToken::new();
    tokio::spawn(forward(listener, address, muted.clone()));
    let url = values::Secret::new(url.as_str());
    (BrokerSettings { url }, muted)
}

#[tokio::test]
async fn a_publisher_stops_in_time_although_the_broker_confirms_nothing() {
    let broker = TestBroker::new();
    let (settings, muted) = muted_broker(&broker).await;
    let shutdown = CancellationToken::new();
    let (publisher, task) = Publisher::new(settings, QUEUE, shutdown.clone());
    let task = tokio::spawn(task);
    eventually("the publisher to be connected", async || {
        publisher.is_connected().then_some(())
    })
    .await;
    muted.cancel();
    publisher.send((0..100).map(|n| message(&n.to_string())));
    eventually("the messages to arrive", async || {
        (broker.waiting().len() == 100).then_some(())
    })
    .await;
    shutdown.cancel();
    tokio::time::timeout(Duration::from_secs(9), task)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_consumer_stops_in_time_although_the_broker_sends_nothing() {
    let broker = TestBroker::new();
    let (settings, muted) = muted_broker(&broker).await;
    let shutdown = CancellationToken::new();
    let config = ConsumerConfig::new(settings, QUEUE, 8);
    let connected = Arc::clone(&config.connected);
    let consuming = consume(config, shutdown.clone(), async |_| Disposition::Done);
    let consuming = tokio::spawn(consuming);
    eventually("the consumer to be connected", async || {
        connected.load(Ordering::Acquire).then_some(())
    })
    .await;
    muted.cancel();
    shutdown.cancel();
    // Two seconds for cancelling the consumer and two for closing the connection.
    tokio::time::timeout(Duration::from_secs(7), consuming)
        .await
        .unwrap()
        .unwrap();
}
