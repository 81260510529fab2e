use std::io::{IsTerminal as _, Write as _, stderr, stdin};

use crate::failure::{Failure, Outcome};

/// Asks a person before something is destroyed. It is refused without a terminal, where no one could answer.
pub(crate) fn confirm(question: &str, yes: bool) -> Outcome {
    if yes {
        return Ok(());
    }
    if !stdin().is_terminal() {
        return Err(Failure::Refused(format!(
            "{question} Nothing was done: there is no terminal to ask at. Add --yes to do it."
        )));
    }
    ask(question)
}

/// Asks a person what no option can confirm. It is refused with `--yes` and without a terminal: `remedy` says what to do
/// then.
pub(crate) fn confirm_in_person(question: &str, remedy: &str, yes: bool) -> Outcome {
    if yes || !stdin().is_terminal() {
        return Err(Failure::Refused(format!(
            "{question} Nothing was done. {remedy}"
        )));
    }
    ask(question)
}

fn ask(question: &str) -> Outcome {
    let _ = write!(stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::Failed(error.into()))?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Refused("Nothing was done.".to_owned()))
    }
}
