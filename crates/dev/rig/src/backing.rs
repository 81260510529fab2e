//! The database and the broker of the system: private servers, or those that the environment names.

use std::env;

use anyhow::{Context, bail};
use local_stack::{
    Description, Durability, Options, Parts, RoleUrls, Servers, bootstrap, database_name,
    with_database,
};

use crate::{output::say, secrets::Secrets, workspace::Workspace};

const DATABASE: &str = "countersign";

/// Urls of the database and the broker.
#[derive(Debug, Clone)]
pub struct Backing {
    /// The database, by role.
    pub databases: RoleUrls,
    /// The broker.
    pub amqp: String,
}

/// The servers that `DATABASE_URL` and `AMQP_URL` name.
pub struct GivenServers {
    database_url: Option<String>,
    amqp_url: Option<String>,
}

impl GivenServers {
    /// Reads the variables.
    pub fn from_environment() -> Self {
        let given = |name| env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            database_url: given("DATABASE_URL"),
            amqp_url: given("AMQP_URL"),
        }
    }

    /// Whether Postgres is started for the system.
    pub fn uses_own_postgres(&self) -> bool {
        self.database_url.is_none()
    }

    /// Returns the servers that have to be started.
    pub fn missing(&self) -> Option<Parts> {
        match (&self.database_url, &self.amqp_url) {
            (None, None) => Some(Parts::Both),
            (None, Some(_)) => Some(Parts::Postgres),
            (Some(_), None) => Some(Parts::RabbitMq),
            (Some(_), Some(_)) => None,
        }
    }
}

/// Starts the missing servers and prepares the database. Returns the superuser's URL of the database, too.
pub fn prepare(
    workspace: &Workspace,
    secrets: &Secrets,
    given: GivenServers,
) -> anyhow::Result<(Backing, String)> {
    let servers = start_missing(workspace, given.missing())?;
    let (admin_url, passwords) = match (given.database_url, &servers) {
        (Some(url), _) => (with_own_database(&url)?, &secrets.external_roles),
        (None, Some(servers)) => (
            servers.postgres.admin_url_of(DATABASE)?,
            &servers.postgres.passwords,
        ),
        (None, None) => bail!("there is no database"),
    };
    let databases = bootstrap::run(&admin_url, passwords).context("preparing the database")?;
    let amqp = given
        .amqp_url
        .or_else(|| servers.map(|servers| servers.rabbitmq.amqp_url))
        .context("there is no broker")?;
    Ok((Backing { databases, amqp }, admin_url))
}

fn start_missing(
    workspace: &Workspace,
    missing: Option<Parts>,
) -> anyhow::Result<Option<Description>> {
    say(match missing {
        Some(Parts::Both) => "starting Postgres and RabbitMQ",
        Some(Parts::Postgres) => "starting Postgres; using RabbitMQ at AMQP_URL",
        Some(Parts::RabbitMq) => "starting RabbitMQ; using Postgres at DATABASE_URL",
        None => "using Postgres at DATABASE_URL and RabbitMQ at AMQP_URL",
    });
    let Some(parts) = missing else {
        return Ok(None);
    };
    let options = Options {
        folder: workspace.servers(),
        durability: Durability::Durable,
        parts,
        broker_nodes: 1,
        standby: false,
    };
    Ok(Some(Servers::start(&options, &say)?.description()))
}

/// An administrator's URL names the database to use, unless that is the one that every server has.
fn with_own_database(url: &str) -> anyhow::Result<String> {
    Ok(match database_name(url)?.as_str() {
        "" | "postgres" => with_database(url, DATABASE)?,
        _ => url.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_url_names_its_database_unless_it_is_the_default_one() {
        for (url, expected) in [
            ("postgres://a:b@h:1/mine", "postgres://a:b@h:1/mine"),
            (
                "postgres://a:b@h:1/postgres",
                "postgres://a:b@h:1/countersign",
            ),
            ("postgres://a:b@h:1", "postgres://a:b@h:1/countersign"),
            (
                "postgres://a:b@h/?sslmode=disable",
                "postgres://a:b@h/countersign?sslmode=disable",
            ),
        ] {
            assert_eq!(with_own_database(url).unwrap(), expected);
        }
    }
}
