//! RabbitMQ as a wake-up, never as the truth.
//!
//! A message holds the identifier of a row and nothing else; the row is claimed in the database before
//! anything is done. So a message may be lost, doubled or reordered without harm:
//!
//! - [`Publisher`] sends right after a commit and never makes its caller wait. What it cannot send is
//!   dropped and counted, because
//! - [`relay()`] sweeps the database for rows that are due and publishes them (again).
//! - [`consume`] hands messages to a handler, with a bounded number in flight, and acknowledges after
//!   the handler is done.
//!
//! What cannot be read, or was delivered too often, goes to the queue's dead-letter queue, whose depth is
//! measured; [`DeadLetters`] and [`dead_letters_command()`] look into it.
//!
//! Each publisher and each consumer owns a connection and a supervisor: a lost connection is opened
//! again with growing pauses, the [`Queue`]s are declared again, and no loss ends the process.
//! Every wait for the broker has a time limit, because a broker that stops does not always say so.

mod connection;
mod consumer;
mod dead_letters;
mod dead_letters_command;
mod message;
mod publisher;
mod queue;
mod relay;

pub use connection::{BrokerSettings, Error};
pub use consumer::{ConsumerConfig, Disposition, consume};
pub use dead_letters::{DeadLetter, DeadLetters};
pub use dead_letters_command::dead_letters_command;
pub use message::Message;
pub use publisher::Publisher;
pub use queue::Queue;
pub use relay::{RelaySettings, relay};
