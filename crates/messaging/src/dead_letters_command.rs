use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use app_config::{Reader, Settings as _};
use values::Names as _;

use crate::connection::BrokerSettings;
use crate::dead_letters::DeadLetters;
use crate::error::Error;
use crate::queue::Queue;

const USAGE: &str = "usage: dead-letters list | replay | discard [LIMIT]";
const DEFAULT_LIMIT: usize = 100;

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
    let done = parse(arguments).and_then(|(action, limit)| run(queue, action, limit));
    Some(match done {
        Ok(text) => {
            // The reader may be gone, as in a pipe to `head`.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "{reason}");
            ExitCode::FAILURE
        }
    })
}

fn parse(arguments: &[OsString]) -> Result<(Action, usize), String> {
    let arguments: Option<Vec<&str>> = arguments.iter().map(|text| text.to_str()).collect();
    let (action, limit) = match arguments.as_deref() {
        Some([action]) => (action, Some(DEFAULT_LIMIT)),
        Some([action, limit]) => (action, limit.parse().ok()),
        _ => return Err(USAGE.to_owned()),
    };
    let action = Action::from_name(action).ok_or(USAGE)?;
    let limit = limit.ok_or_else(|| format!("{USAGE}; LIMIT is a whole number"))?;
    Ok((action, limit))
}

fn run(queue: Queue, action: Action, limit: usize) -> Result<String, String> {
    let settings = Reader::from_process().and_then(|mut reader| BrokerSettings::read(&mut reader));
    let settings = settings.map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let done = runtime.block_on(async {
        let letters = DeadLetters::open(&settings, queue).await?;
        let done = act(&letters, action, limit).await;
        letters.close().await;
        done
    });
    done.map_err(|error: Error| with_causes(&error))
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

fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<(Action, usize), String> {
        parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
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
