//! The client programs of Postgres. The password is never on a command line, where every user of the machine could read it.

use std::process::Command;

use anyhow::{Context as _, Result, anyhow, bail};
use percent_encoding::percent_decode_str;
use url::Url;

use crate::packages;
use crate::process::{output_of, run};

/// A `psql` that stops at the first error, and prints only rows.
pub fn psql(url: &str) -> Result<Command> {
    let mut psql = command("psql", url)?;
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only"]);
    psql.args(["--set", "ON_ERROR_STOP=1"]);
    Ok(psql)
}

/// Returns what `psql` prints for statements: each row in a line, with `|` between its columns.
pub fn query(url: &str, sql: &str) -> Result<String> {
    output_of(psql(url)?.args(["--no-align", "--command", sql]))
}

pub fn pgbench(url: &str, options: &str) -> Result<String> {
    let (mut command, url) = program("pgbench", url)?;
    output_of(command.arg(url).args(options.split(' ')))
}

/// Returns a dump of the database in the custom format.
pub fn dump(url: &str) -> Result<Vec<u8>> {
    run(command("pg_dump", url)?.arg("--format=custom"), b"")
}

/// Restores a dump into the database of `url`, with more options of `pg_restore`, such as `--clean`.
pub fn restore(url: &str, dump: &[u8], options: &[&str]) -> Result<()> {
    let mut pg_restore = command("pg_restore", url)?;
    pg_restore.arg("--exit-on-error").args(options);
    run(&mut pg_restore, dump).map(drop)
}

/// Returns a client program that connects to the database of `url`.
pub(crate) fn command(name: &str, url: &str) -> Result<Command> {
    let (mut command, url) = program(name, url)?;
    command.args(["--no-password", "--dbname", &url]);
    Ok(command)
}

/// A client program, and the URL without the password, which the program has in its environment.
fn program(name: &str, url: &str) -> Result<(Command, String)> {
    let url = parse(url)?;
    let without_password = with_credentials(&url, url.username(), None)?;
    let mut command = Command::new(packages::postgres_client(name)?);
    command.env("PGCONNECT_TIMEOUT", "10");
    if let Some(password) = url.password() {
        command.env("PGPASSWORD", decode(password));
    }
    Ok((command, without_password))
}

/// Returns `url` with another database. User, host and parameters stay.
pub fn with_database(url: &str, database: &str) -> Result<String> {
    let mut url = parse(url)?;
    url.set_path(database);
    Ok(url.into())
}

/// Returns the name of the database; empty when `url` names none.
pub fn database_name(url: &str) -> Result<String> {
    let url = parse(url)?;
    Ok(decode(url.path().trim_start_matches('/')))
}

pub(crate) fn parse(url: &str) -> Result<Url> {
    // No error has the URL itself, which contains a password.
    let url = Url::parse(url).context("invalid database URL")?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        bail!("invalid database URL: the scheme is not postgres");
    }
    if url.host_str().is_none_or(str::is_empty) {
        bail!("invalid database URL: the host is missing");
    }
    Ok(url)
}

pub(crate) fn with_credentials(url: &Url, user: &str, password: Option<&str>) -> Result<String> {
    let mut url = url.clone();
    url.set_username(user)
        .and_then(|()| url.set_password(password))
        .map_err(|()| anyhow!("the database URL cannot hold credentials"))?;
    Ok(url.into())
}

/// Replaces the `%xx` sequences of a part of a URL.
pub(crate) fn decode(part: &str) -> String {
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_database_replaces_only_the_database() {
        for (url, expected) in [
            (
                "postgres://a:b@127.0.0.1:1/x?sslmode=disable",
                "postgres://a:b@127.0.0.1:1/y?sslmode=disable",
            ),
            ("postgres://h", "postgres://h/y"),
        ] {
            assert_eq!(with_database(url, "y").unwrap(), expected);
        }
    }

    #[test]
    fn database_name_is_empty_when_the_url_names_none() {
        for (url, expected) in [
            ("postgres://h/x?a=b", "x"),
            ("postgresql://h/", ""),
            ("postgres://h", ""),
        ] {
            assert_eq!(database_name(url).unwrap(), expected);
        }
    }

    #[test]
    fn other_urls_are_refused() {
        for url in ["mysql://a:b@h/x", "x", "postgres:///x"] {
            assert!(with_database(url, "y").is_err(), "{url}");
        }
    }

    #[test]
    fn credentials_are_replaced() {
        let url = parse("postgres://a:p%40ss@h/x").unwrap();
        assert_eq!(decode(url.password().unwrap()), "p@ss");
        assert_eq!(
            with_credentials(&url, "b", None).unwrap(),
            "postgres://b@h/x"
        );
    }
}
