//! The database and the broker of a system: private servers, or those that the environment names.

use std::env;

use anyhow::Context as _;
use local_stack::{
    Durability, Layout, Need, Roles, Servers, bootstrap, database_name, packages, with_database,
};

use crate::output::say;
use crate::secrets::Secrets;
use crate::workspace::Workspace;

const DATABASE: &str = "countersign";

#[derive(Debug)]
pub struct Backing {
    /// The URLs of the database, by role.
    pub databases: Roles,
    /// The superuser's URL of the database.
    pub admin_url: String,
    pub amqp: String,
    /// The private servers, if at least one was started.
    pub servers: Option<Servers>,
    pub(crate) secrets: Secrets,
}

impl Backing {
    /// Installs and starts private servers, and prepares the database. Without a layout, the servers that `DATABASE_URL` and
    /// `AMQP_URL` name are used instead, and the data of private ones survives a failure of the machine.
    pub(crate) fn start(workspace: &Workspace, layout: Option<Layout>) -> anyhow::Result<Self> {
        let secrets = Secrets::prepare(workspace)?;
        let given = |name| {
            let named = env::var(name).ok().filter(|value| !value.is_empty());
            named.filter(|_| layout.is_none())
        };
        let (database_url, amqp) = (given("DATABASE_URL"), given("AMQP_URL"));
        let layout = layout.unwrap_or(Layout {
            postgres: database_url.is_none(),
            rabbitmq: amqp.is_none(),
            durability: Durability::Durable,
            ..Layout::SINGLE
        });
        packages::ensure(&[Need::PSQL], &say)?;
        let has_servers = layout.postgres || layout.rabbitmq;
        let start = || start_servers(workspace, layout);
        let servers = has_servers.then(start).transpose()?;
        let description = servers.as_ref().map(Servers::description);
        let of_servers = || description.clone().context("there are no servers");
        let (admin_url, passwords) = match database_url {
            Some(url) => (with_own_database(&url)?, secrets.external_roles.clone()),
            None => {
                let postgres = of_servers()?.postgres;
                (postgres.admin_url_of(DATABASE)?, postgres.passwords)
            }
        };
        let databases = bootstrap::run(&admin_url, &passwords).context("preparing the database")?;
        let amqp = amqp.map_or_else(|| Ok(of_servers()?.rabbitmq.amqp_url), anyhow::Ok)?;
        Ok(Self {
            databases,
            admin_url,
            amqp,
            servers,
            secrets,
        })
    }
}

fn start_servers(workspace: &Workspace, layout: Layout) -> anyhow::Result<Servers> {
    say(match (layout.postgres, layout.rabbitmq) {
        (true, true) => "starting Postgres and RabbitMQ",
        (true, false) => "starting Postgres; using RabbitMQ at AMQP_URL",
        _ => "starting RabbitMQ; using Postgres at DATABASE_URL",
    });
    Servers::start(&workspace.servers(), layout, &say)
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
