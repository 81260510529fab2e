use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use messaging::{BrokerSettings, DeadLetters, Queue};
use serde_json::json;

use crate::Outcome;
use crate::output::{Column, Output};

const EXAMPLES: &str = "\
A dead letter is evidence of a bug or an outage. The row that it names does not depend on it. AMQP_URL must be set, as it is in
the containers of services and workers.

Examples:
  countersign dead-letters list deletions
  countersign dead-letters replay notifications
  countersign dead-letters discard deliveries --limit 10";

const COLUMNS: [Column; 4] = [
    ("id", "/id"),
    ("reason", "/reason"),
    ("died", "/died"),
    ("request", "/requestId"),
];

#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// List dead letters, and leave them where they are.
    List(Letters),
    /// Publish dead letters to their queue again.
    Replay(Letters),
    /// Drop dead letters.
    Discard(Letters),
}

#[derive(Args)]
pub(crate) struct Letters {
    /// What the messages were about.
    #[arg(value_enum)]
    queue: QueueName,
    /// How many dead letters at most.
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum QueueName {
    Deliveries,
    Deletions,
    Notifications,
}

impl QueueName {
    fn queue(self) -> Queue {
        match self {
            Self::Deliveries => people_task_service::deliveries::QUEUE,
            Self::Deletions => user_service::deletions::QUEUE,
            Self::Notifications => user_service::notifications::QUEUE,
        }
    }
}

pub(crate) fn run(command: &Command, output: Output) -> Outcome {
    let settings: BrokerSettings = super::settings()?;
    let (Command::List(letters) | Command::Replay(letters) | Command::Discard(letters)) = command;
    if let Command::Discard(letters) = command {
        let name = letters.queue.queue().dead_letter_name();
        let question = format!("Discard up to {} messages of {name}?", letters.limit);
        output.confirm(&question)?;
    }
    let done = super::runtime()?.block_on(async {
        let opened = DeadLetters::open(&settings, letters.queue.queue()).await?;
        let done = act(command, &opened, letters.limit, output).await;
        opened.close().await;
        done
    });
    done.context("the dead letters cannot be reached")?
}

async fn act(
    command: &Command,
    letters: &DeadLetters,
    limit: usize,
    output: Output,
) -> Result<Outcome, messaging::Error> {
    let (done, number) = match command {
        Command::List(_) => {
            let listed = letters.list(limit).await?;
            let letters = listed.iter().map(|letter| json!(letter));
            return Ok(output.list(&COLUMNS, letters.collect()));
        }
        Command::Replay(_) => ("replayed", letters.replay(limit).await?),
        Command::Discard(_) => ("discarded", letters.discard(limit).await?),
    };
    let sentence = format!("{number} messages of {} were {done}.", letters.name());
    Ok(output.done(&sentence, &json!({ done: number })))
}
