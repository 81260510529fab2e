//! Listing, replaying and discarding dead letters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::error::Error as _;
use std::time::Duration;

use lapin::ConnectionProperties;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use messaging::{
    BrokerSettings, ConsumerConfig, DeadLetters, Disposition, Message, Publisher, Queue, consume,
};
use telemetry::RequestContext;
use testkit::{TestBroker, eventually};
use tokio_util::sync::CancellationToken;

const QUEUE: Queue = Queue::new("test.letters");

/// A broker with three messages in its dead-letter queue, and those messages.
async fn three_dead_letters() -> (TestBroker, DeadLetters, Vec<Message>) {
    let broker = TestBroker::new();
    let settings = BrokerSettings { url: broker.url() };
    let (shutdown, consuming) = (CancellationToken::new(), CancellationToken::new());
    let (publisher, publishing) = Publisher::new(settings.clone(), QUEUE, shutdown.clone());
    let publishing = tokio::spawn(publishing);
    let config = ConsumerConfig::new(settings.clone(), QUEUE, 8);
    let rejecting = consume(config, consuming.clone(), |_| async { Disposition::Reject });
    let rejecting = tokio::spawn(rejecting);
    let messages: Vec<_> = ["one", "two", "three"]
        .map(|id| Message::new(id, RequestContext::fresh()))
        .into();
    eventually("the publisher to be connected", async || {
        publisher.is_connected().then_some(())
    })
    .await;
    publisher.send(messages.clone());
    let letters = DeadLetters::open(&settings, QUEUE).await.unwrap();
    eventually("three dead letters", async || {
        (letters.depth().await.unwrap() == 3).then_some(())
    })
    .await;
    consuming.cancel();
    rejecting.await.unwrap();
    shutdown.cancel();
    publishing.await.unwrap();
    (broker, letters, messages)
}

fn ids(messages: &[Message]) -> Vec<&str> {
    let mut ids: Vec<_> = messages.iter().map(|m| m.body.as_str()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn a_list_shows_each_dead_letter_with_its_reason_and_leaves_it_there() {
    let (_broker, letters, messages) = three_dead_letters().await;
    for _ in 0..3 {
        let found = letters.list(10).await.unwrap();
        let mut listed: Vec<_> = found.iter().map(|letter| letter.id.as_str()).collect();
        listed.sort_unstable();
        assert_eq!(listed, ids(&messages));
        for letter in &found {
            assert_eq!(letter.reason, "rejected");
            assert!(letter.died.is_some());
            let sent = messages.iter().find(|m| m.body == letter.id).unwrap();
            assert_eq!(letter.request_id.as_ref(), Some(&sent.context.request_id));
        }
    }
    assert_eq!(letters.list(2).await.unwrap().len(), 2);
    eventually("all messages to be requeued", async || {
        (letters.depth().await.unwrap() == 3).then_some(())
    })
    .await;
    letters.close().await;
}

#[tokio::test]
async fn a_replayed_message_arrives_in_its_queue_with_its_request_id() {
    let (broker, letters, messages) = three_dead_letters().await;
    assert_eq!(letters.replay(10).await.unwrap(), 3);
    assert_eq!(letters.depth().await.unwrap(), 0);
    letters.close().await;

    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let settings = BrokerSettings { url: broker.url() };
    let shutdown = CancellationToken::new();
    let config = ConsumerConfig::new(settings, QUEUE, 8);
    let consuming = tokio::spawn(consume(config, shutdown.clone(), move |message| {
        sender.send(message).unwrap();
        async { Disposition::Done }
    }));
    let mut received = Vec::new();
    for _ in 0..3 {
        let next = tokio::time::timeout(Duration::from_secs(10), receiver.recv());
        received.push(next.await.unwrap().unwrap());
    }
    assert_eq!(ids(&received), ids(&messages));
    for message in received {
        let sent = messages.iter().find(|m| m.body == message.body).unwrap();
        assert_eq!(message.context.request_id, sent.context.request_id);
    }
    shutdown.cancel();
    consuming.await.unwrap();
}

#[tokio::test]
async fn a_discarded_message_is_removed() {
    let (_broker, letters, _) = three_dead_letters().await;
    assert_eq!(letters.discard(2).await.unwrap(), 2);
    assert_eq!(letters.depth().await.unwrap(), 1);
    assert_eq!(letters.list(10).await.unwrap().len(), 1);
    letters.close().await;
}

#[tokio::test]
async fn a_queue_that_was_declared_with_other_arguments_is_used_as_it_is() {
    let broker = TestBroker::new();
    let url = broker.url();
    let connection = lapin::Connection::connect(url.expose(), ConnectionProperties::default());
    let channel = connection.await.unwrap().create_channel().await.unwrap();
    let (name, options) = (QUEUE.dead_letter_name(), QueueDeclareOptions::durable());
    let mut arguments = FieldTable::default();
    arguments.insert(
        "x-queue-type".into(),
        AMQPValue::LongString("quorum".into()),
    );
    let declared = channel.queue_declare(name.into(), options, arguments);
    declared.await.unwrap();

    let letters = DeadLetters::open(&BrokerSettings { url }, QUEUE)
        .await
        .unwrap();
    assert_eq!(letters.depth().await.unwrap(), 0);
    letters.close().await;
}

#[tokio::test]
async fn queues_that_the_broker_refuses_are_an_error_unless_they_exist() {
    let broker = TestBroker::new();
    let settings = BrokerSettings { url: broker.url() };
    broker.limit_queues(0);
    let refused = DeadLetters::open(&settings, QUEUE).await.err().unwrap();
    let cause = refused.source().unwrap().to_string();
    assert!(cause.contains("PRECONDITION"), "{cause}");
}
