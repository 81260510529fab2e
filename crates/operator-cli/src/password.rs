use std::io::stdin;

use anyhow::Context as _;
use clap::Args;
use rand::RngExt as _;
use rand::distr::Alphanumeric;

use crate::failure::Failure;

const GENERATED_LENGTH: usize = 24;

/// Where a new password comes from. An argument would be visible to every user of the machine.
#[derive(Args)]
pub(crate) struct PasswordSource {
    /// Read the password from the first line of standard input, instead of generating one that is printed once.
    #[arg(long)]
    password_stdin: bool,
}

/// A new password.
pub(crate) struct NewPassword {
    pub(crate) text: String,
    /// Whether it must be shown, because no one knows it yet.
    pub(crate) is_generated: bool,
}

impl PasswordSource {
    pub(crate) fn read(&self) -> Result<NewPassword, Failure> {
        if !self.password_stdin {
            let characters = rand::rng().sample_iter(Alphanumeric);
            return Ok(NewPassword {
                text: characters.take(GENERATED_LENGTH).map(char::from).collect(),
                is_generated: true,
            });
        }
        let mut line = String::new();
        stdin()
            .read_line(&mut line)
            .context("standard input cannot be read")?;
        let text = line.trim_end_matches(['\r', '\n']).to_owned();
        if text.is_empty() {
            return Err(Failure::Usage("standard input has no password".to_owned()));
        }
        Ok(NewPassword {
            text,
            is_generated: false,
        })
    }
}
