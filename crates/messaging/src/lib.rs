//! RabbitMQ as a notification that work is due. The database holds the work itself.
//!
//! A message is the identifier of a row; the row is claimed in the database before anything is done. So a message may be
//! lost, duplicated or reordered without harm: workers sweep the database for due rows that have no message in flight, and
//! publish them. A message that cannot be parsed, or was delivered too often, goes to the queue's dead-letter queue.
//!
//! Each publisher and each consumer owns a connection and a supervisor: after a lost connection it
//! reconnects with growing pauses and declares its [`Queue`] again; no loss ends the process. Every wait
//! for the broker has a time limit, because a broker that stops does not always close the connection.
//!
//! Deliberately absent: the names of queues, which belong to the capabilities that own them.

mod connection;
mod consumer;
mod dead_letters;
mod error;
mod message;
mod publisher;
mod queue;

pub use connection::BrokerSettings;
pub use consumer::{ConsumerConfig, Disposition, consume};
pub use dead_letters::{DeadLetter, DeadLetters, dead_letters_command};
pub use error::Error;
pub use message::Message;
pub use publisher::{Publisher, QueueStatus};
pub use queue::Queue;
