use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use app_config::{Reader, Settings as _};
use lapin::Confirmation;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{BasicAckOptions, BasicGetOptions, BasicNackOptions, ConfirmSelectOptions};
use lapin::types::AMQPValue;
use serde::Serialize;
use values::Names as _;

use crate::connection::{BrokerConnection, BrokerSettings};
use crate::error::{Error, with_timeout};
use crate::message::Message;
use crate::queue::Queue;

/// Characters of an identifier that are shown; valid ones are shorter.
const MAX_ID_LENGTH: usize = 64;
const USAGE: &str = "usage: dead-letters list | replay | discard [LIMIT]";
const DEFAULT_LIMIT: usize = 100;

/// A message that was delivered too often or could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The identifier of its row, or the beginning of the body if that is something else; without control
    /// characters.
    pub id: String,
    /// Why it was dead-lettered, in the broker's terms: `delivery_limit`, `rejected`, `maxlen`.
    pub reason: String,
    /// When it was dead-lettered, in seconds since 1970.
    pub died: Option<u64>,
    /// The request that caused it.
    pub request_id: Option<String>,
}

/// The dead-letter queue of a queue, for operators.
///
/// The row of a dead letter does not depend on it: the sweep finds due rows in any case. A dead letter
/// is evidence of a bug or an outage, and may be discarded once that is understood. Calls fail while the broker is unavailable.
pub struct DeadLetters {
    connection: BrokerConnection,
    queue: Queue,
}

impl DeadLetters {
    /// Connects to the broker and declares the queues.
    pub async fn open(settings: &BrokerSettings, queue: Queue) -> Result<Self, Error> {
        let connection = BrokerConnection::open(settings, queue).await?;
        let options = ConfirmSelectOptions::default();
        with_timeout(connection.channel.confirm_select(options)).await?;
        Ok(Self { connection, queue })
    }

    /// The dead-letter queue's name.
    pub fn name(&self) -> String {
        self.queue.dead_letter_name()
    }

    /// The number of dead letters.
    pub async fn depth(&self) -> Result<u32, Error> {
        self.queue.dead_letter_depth(&self.connection.channel).await
    }

    /// Lists the first `limit` dead letters and leaves them in the queue.
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, Error> {
        let (mut found, mut unacknowledged) = (Vec::new(), Vec::new());
        // Requeued after all are read: a message that is requeued at once would be delivered next again.
        while unacknowledged.len() < limit
            && let Some(message) = self.next().await?
        {
            found.push(describe(&message.delivery));
            unacknowledged.push(message.delivery);
        }
        for delivery in unacknowledged {
            let requeue = BasicNackOptions {
                requeue: true,
                ..BasicNackOptions::default()
            };
            with_timeout(delivery.nack(requeue)).await?;
        }
        Ok(found)
    }

    /// Publishes the first `limit` dead letters to their queue again and returns how many. Each is
    /// removed after the broker has confirmed its copy: a failure in between leaves both, which does no
    /// harm. It fails, too, if the broker refuses a copy because the queue is full.
    pub async fn replay(&self, limit: usize) -> Result<usize, Error> {
        self.remove(limit, async |delivery| self.publish_copy(delivery).await)
            .await
    }

    /// Removes the first `limit` dead letters and returns how many.
    pub async fn discard(&self, limit: usize) -> Result<usize, Error> {
        self.remove(limit, async |_| Ok(())).await
    }

    /// Removes each of the first `limit` dead letters after `prepare`, and returns how many.
    async fn remove(
        &self,
        limit: usize,
        prepare: impl AsyncFn(&Delivery) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let mut removed = 0;
        while removed < limit
            && let Some(message) = self.next().await?
        {
            prepare(&message.delivery).await?;
            with_timeout(message.delivery.ack(BasicAckOptions::default())).await?;
            removed += 1;
        }
        Ok(removed)
    }

    async fn publish_copy(&self, delivery: &Delivery) -> Result<(), Error> {
        // Only the request's context is copied: the other headers count the deliveries so far.
        let properties = Message::parse(delivery).map(|message| message.properties());
        let (channel, properties) = (&self.connection.channel, properties.unwrap_or_default());
        let publishing = self.queue.publish(channel, &delivery.data, properties);
        match with_timeout(publishing.await?).await? {
            Confirmation::Ack(None) | Confirmation::NotRequested => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(_) => Err(Error::Refused),
        }
    }

    async fn next(&self) -> Result<Option<BasicGetMessage>, Error> {
        let name = self.queue.dead_letter_name();
        let channel = &self.connection.channel;
        with_timeout(channel.basic_get(name.into(), BasicGetOptions::default())).await
    }

    /// Closes the connection; listed messages stay in the queue.
    pub async fn close(self) {
        self.connection.close().await;
    }
}

fn describe(delivery: &Delivery) -> DeadLetter {
    let context = Message::parse(delivery).map(|message| message.context);
    let shown = String::from_utf8_lossy(&delivery.data);
    let shown = shown.chars().filter(|c| !c.is_control());
    let reason = death(delivery, "reason").and_then(AMQPValue::as_long_string);
    DeadLetter {
        id: shown.take(MAX_ID_LENGTH).collect(),
        reason: reason.map_or_else(|| "unknown".to_owned(), ToString::to_string),
        died: death(delivery, "time").and_then(AMQPValue::as_timestamp),
        request_id: context.map(|context| context.request_id),
    }
}

/// A field of the newest entry of `x-death`, the header in which the broker records dead-lettering.
fn death<'a>(delivery: &'a Delivery, field: &str) -> Option<&'a AMQPValue> {
    let headers = delivery.properties.headers().as_ref()?.inner();
    let deaths = headers.get("x-death")?.as_array()?;
    let newest = deaths.as_slice().first()?.as_field_table()?;
    newest.inner().get(field)
}

values::names! {
    enum Action {
        List = "list",
        Replay = "replay",
        Discard = "discard",
    }
}

/// The subcommand `dead-letters` of a worker: `list`, `replay` or `discard`, and an optional limit (100 by
/// default). It reads the worker's own settings, so run it in the worker's environment.
///
/// `None` when the process was started without the subcommand.
pub fn dead_letters_command(queue: Queue) -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (command, arguments) = arguments.split_first()?;
    if command != "dead-letters" {
        return None;
    }
    let done = parse(arguments)
        .and_then(|(action, limit)| run(queue, action, limit))
        .and_then(|text| telemetry::print(&text));
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error:#}");
            ExitCode::FAILURE
        }
    })
}

fn parse(arguments: &[OsString]) -> anyhow::Result<(Action, usize)> {
    let arguments: Option<Vec<&str>> = arguments.iter().map(|text| text.to_str()).collect();
    let (action, limit) = match arguments.as_deref() {
        Some([action]) => (action, Some(DEFAULT_LIMIT)),
        Some([action, limit]) => (action, limit.parse().ok()),
        _ => bail!(USAGE),
    };
    let action = Action::from_name(action).context(USAGE)?;
    let limit = limit.with_context(|| format!("{USAGE}; LIMIT is a whole number"))?;
    Ok((action, limit))
}

fn run(queue: Queue, action: Action, limit: usize) -> anyhow::Result<String> {
    let settings = BrokerSettings::read(&mut Reader::from_process()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let letters = DeadLetters::open(&settings, queue).await?;
        let done = act(&letters, action, limit).await;
        letters.close().await;
        Ok(done?)
    })
}

async fn act(letters: &DeadLetters, action: Action, limit: usize) -> Result<String, Error> {
    let name = letters.name();
    Ok(match action {
        Action::Replay => format!("{} replayed from {name}\n", letters.replay(limit).await?),
        Action::Discard => format!("{} discarded from {name}\n", letters.discard(limit).await?),
        Action::List => {
            let depth = letters.depth().await?;
            let mut text = format!("{depth} in {name}\n");
            for letter in letters.list(limit).await? {
                let died = letter
                    .died
                    .map_or_else(String::new, |at| format!(" at {at}"));
                let request = letter.request_id.unwrap_or_default();
                // Writing to a string does not fail.
                let _ = writeln!(
                    text,
                    "{}  {}{died}  request {request}",
                    letter.id, letter.reason
                );
            }
            text
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<(Action, usize), String> {
        let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
        parse(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn it_takes_an_action_and_an_optional_limit() {
        assert_eq!(parsed(&["list"]), Ok((Action::List, 100)));
        assert_eq!(parsed(&["replay", "7"]), Ok((Action::Replay, 7)));
        assert_eq!(parsed(&["discard", "1"]), Ok((Action::Discard, 1)));
        for wrong in [&[][..], &["purge"], &["list", "x"], &["list", "1", "2"]] {
            assert!(parsed(wrong).is_err_and(|text| text.starts_with("usage")));
        }
    }
}
