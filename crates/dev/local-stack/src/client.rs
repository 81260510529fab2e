//! The client programs of Postgres. The password is never on a command line, where every user of the machine could read it.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    database_url::{self, with_credentials},
    packages,
};

/// Returns what `psql` prints for statements: each row in a line, with `|` between its columns.
pub fn query(url: &str, sql: &str) -> Result<String> {
    let mut command = command("psql", url)?;
    command
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
        .args(["--set", "ON_ERROR_STOP=1", "--command", sql]);
    printed("psql", &mut command)
}

/// Returns what `pgbench` prints.
pub fn pgbench(url: &str, arguments: &[String]) -> Result<String> {
    let (mut command, url) = program("pgbench", url)?;
    printed("pgbench", command.arg(url).args(arguments))
}

fn printed(name: &str, command: &mut Command) -> Result<String> {
    let output = run(name, command.stdout(Stdio::piped()), b"")?;
    let text = check(name, output)?;
    Ok(String::from_utf8_lossy(&text).trim().to_owned())
}

/// Returns a client program that connects to the database of `url`.
pub(crate) fn command(name: &str, url: &str) -> Result<Command> {
    let (mut command, url) = program(name, url)?;
    command.args(["--no-password", "--dbname", &url]);
    Ok(command)
}

/// A client program, and the URL without the password, which the program has in its environment.
fn program(name: &str, url: &str) -> Result<(Command, String)> {
    let url = database_url::parse(url)?;
    let without_password = with_credentials(&url, url.username(), None)?;
    let mut command = Command::new(packages::postgres_client(name)?);
    command
        .env("PGCONNECT_TIMEOUT", "10")
        .stderr(Stdio::piped());
    if let Some(password) = url.password() {
        command.env("PGPASSWORD", database_url::decode(password));
    }
    Ok((command, without_password))
}

/// Runs a client program with this input.
pub(crate) fn run(name: &str, command: &mut Command, input: &[u8]) -> Result<Output> {
    let failed = || format!("running {name}");
    let mut child = command.stdin(Stdio::piped()).spawn().with_context(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // The program may end before it has read everything. Its own message says why.
        let _ = stdin.write_all(input);
    }
    child.wait_with_output().with_context(failed)
}

/// Returns the output, or an error if the program failed.
pub(crate) fn check(name: &str, output: Output) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    bail!("{name} failed ({}): {}", output.status, message.trim())
}
