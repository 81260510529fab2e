//! Wake-ups against a real broker, also one that goes away.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::{
    BrokerSettings, ConsumerConfig, Disposition, Message, Publisher, Queue, RelaySettings, consume,
    relay,
};
use telemetry::RequestContext;
use testkit::{TestBroker, eventually};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const QUEUE: Queue = Queue::WEBHOOK_DELIVERIES;

struct World {
    broker: TestBroker,
    shutdown: CancellationToken,
    publisher: Publisher,
    received: Arc<Mutex<Vec<Message>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl World {
    async fn start() -> Self {
        let broker = TestBroker::new();
        let shutdown = CancellationToken::new();
        let (publisher, task) = Publisher::new(settings(&broker), QUEUE, shutdown.clone());
        let world = Self {
            broker,
            shutdown,
            publisher,
            received: Arc::default(),
            tasks: vec![tokio::spawn(task)],
        };
        world.connected().await;
        world
    }

    async fn connected(&self) {
        eventually("the publisher to be connected", || async {
            self.publisher.is_connected().then_some(())
        })
        .await;
    }

    /// Consumes in the background: every message is noted, then settled as `dispose` says.
    fn consume(
        &mut self,
        dispose: impl Fn(&Message) -> Disposition + Clone + Send + Sync + 'static,
    ) {
        let received = Arc::clone(&self.received);
        let consumption = ConsumerConfig::new(settings(&self.broker), QUEUE, 8);
        let task = consume(consumption, self.shutdown.clone(), move |message| {
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
    let mut world = World::start().await;
    world.consume(|_| Disposition::Done);
    let sent = message("abc");
    world.publisher.send([sent.clone()]);
    let received = world.received(1).await.remove(0);
    assert_eq!(received.id, "abc");
    assert_eq!(received.context.request_id, sent.context.request_id);
    assert_eq!(
        received.context.trace.trace_id(),
        sent.context.trace.trace_id()
    );
    world.stop().await;
}

#[tokio::test]
async fn a_message_that_could_not_be_handled_comes_again_and_a_senseless_one_does_not() {
    let mut world = World::start().await;
    let tries = Arc::new(AtomicUsize::new(0));
    world.consume(move |message| match message.id.as_str() {
        "senseless" => Disposition::Reject,
        _ if tries.fetch_add(1, Ordering::SeqCst) < 2 => Disposition::Requeue,
        _ => Disposition::Done,
    });
    world
        .publisher
        .send([message("senseless"), message("stubborn")]);
    let mut ids: Vec<_> = world.received(4).await.into_iter().map(|m| m.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["senseless", "stubborn", "stubborn", "stubborn"]);
    world.stop().await;
}

#[tokio::test]
async fn publisher_and_consumer_outlive_a_broker_that_goes_away() {
    let mut world = World::start().await;
    world.consume(|_| Disposition::Done);
    world.publisher.send([message("before")]);
    world.received(1).await;

    world.broker.set_reachable(false);
    eventually("the publisher to notice", || async {
        world.broker.cut_connections();
        (!world.publisher.is_connected()).then_some(())
    })
    .await;
    world.broker.set_reachable(true);
    world.connected().await;
    world.publisher.send([message("after")]);
    let received = world.received(2).await;
    assert_eq!(received.last().unwrap().id, "after");
    world.stop().await;
}

#[tokio::test]
async fn the_relay_publishes_what_is_due_and_waits_while_the_broker_is_away() {
    let mut world = World::start().await;
    world.consume(|_| Disposition::Done);
    let due = Arc::new(Mutex::new(vec![
        message("one"),
        message("two"),
        message("three"),
    ]));
    let source = Arc::clone(&due);
    let settings = RelaySettings {
        pause: Duration::from_millis(10),
        batch: 2,
    };
    let sweeping = relay(
        world.publisher.clone(),
        settings,
        world.shutdown.clone(),
        move |batch| {
            let mut due = source.lock().unwrap();
            let taken = due.len().min(usize::try_from(batch).unwrap());
            let messages = due.drain(..taken).collect();
            async { Ok::<_, std::io::Error>(messages) }
        },
    );
    world.tasks.push(tokio::spawn(sweeping));
    assert_eq!(world.received(3).await.len(), 3);

    world.broker.set_reachable(false);
    eventually("the publisher to notice", || async {
        world.broker.cut_connections();
        (!world.publisher.is_connected()).then_some(())
    })
    .await;
    due.lock().unwrap().push(message("kept"));
    world.broker.set_reachable(true);
    assert_eq!(world.received(4).await.last().unwrap().id, "kept");
    world.stop().await;
}

#[tokio::test]
async fn a_stop_lets_handlers_in_flight_finish() {
    let mut world = World::start().await;
    let (started, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let release = CancellationToken::new();
    let consumption = ConsumerConfig::new(settings(&world.broker), QUEUE, 8);
    let (s, f, r) = (Arc::clone(&started), Arc::clone(&finished), release.clone());
    let consuming = consume(consumption, world.shutdown.clone(), move |_| {
        let (s, f, r) = (Arc::clone(&s), Arc::clone(&f), r.clone());
        async move {
            s.fetch_add(1, Ordering::SeqCst);
            r.cancelled().await;
            f.fetch_add(1, Ordering::SeqCst);
            Disposition::Done
        }
    });
    world.tasks.push(tokio::spawn(consuming));
    world.publisher.send([message("slow")]);
    eventually("the handler to start", || async {
        (started.load(Ordering::SeqCst) == 1).then_some(())
    })
    .await;
    world.shutdown.cancel();
    release.cancel();
    world.stop().await;
    assert_eq!(finished.load(Ordering::SeqCst), 1);
}
