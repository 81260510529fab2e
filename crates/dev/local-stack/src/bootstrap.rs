//! Prepares a database with the project's roles, schemas and rights, by `deploy/postgres/bootstrap.sql`.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::client::{self, database_name, with_credentials, with_database};
use crate::{process, random};

const SCRIPT: &str = include_str!("../../../../deploy/postgres/bootstrap.sql");

/// How often a script is tried when others run at the same time. Roles belong to the whole server, and
/// Postgres refuses concurrent changes of one role.
const MAX_ATTEMPTS: u32 = 10;

/// Something of each of the four database roles: a password, or the URL of one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Roles {
    /// Of `users_owner`, which runs the migrations of the schema `users`: for `DATABASE_OWNER_URL` of the user service and its
    /// workers.
    pub users_owner: String,
    /// Of `users_service`, which reads and writes its rows: for their `DATABASE_URL`.
    pub users_service: String,
    /// Of `people_task_owner`, which runs the migrations of the schema `people_task`: for `DATABASE_OWNER_URL` of the
    /// people-task service and its worker.
    pub people_task_owner: String,
    /// Of `people_task_service`, which reads and writes its rows: for their `DATABASE_URL`.
    pub people_task_service: String,
}

impl Roles {
    pub fn random_passwords() -> Self {
        Self {
            users_owner: random::password(),
            users_service: random::password(),
            people_task_owner: random::password(),
            people_task_service: random::password(),
        }
    }

    /// Returns the URLs of roles with these passwords for the database that `admin_url` names.
    pub fn urls(admin_url: &str, passwords: &Self) -> Result<Self> {
        let url = client::parse(admin_url)?;
        let url = |role, password| with_credentials(&url, role, Some(password));
        Ok(Self {
            users_owner: url("users_owner", &passwords.users_owner)?,
            users_service: url("users_service", &passwords.users_service)?,
            people_task_owner: url("people_task_owner", &passwords.people_task_owner)?,
            people_task_service: url("people_task_service", &passwords.people_task_service)?,
        })
    }
}

/// Prepares the database that `admin_url` names, and creates it if it is missing. Can be repeated.
/// The user of the URL must have the right to create roles and schemas. A missing database is created through
/// the database `postgres` of the same server.
pub fn run(admin_url: &str, passwords: &Roles) -> Result<Roles> {
    let urls = Roles::urls(admin_url, passwords)?;
    create_database(admin_url)?;
    let variables = [
        ("USERS_OWNER_PASSWORD", &*passwords.users_owner),
        ("USERS_SERVICE_PASSWORD", &passwords.users_service),
        ("PEOPLE_TASK_OWNER_PASSWORD", &passwords.people_task_owner),
        (
            "PEOPLE_TASK_SERVICE_PASSWORD",
            &passwords.people_task_service,
        ),
    ];
    execute_with(admin_url, SCRIPT, &variables)?;
    Ok(urls)
}

fn create_database(admin_url: &str) -> Result<()> {
    let name = database_name(admin_url)?;
    if execute(admin_url, "SELECT 1;").is_ok() {
        return Ok(());
    }
    let quoted = name.replace('\'', "''");
    let statement = format!(
        "SELECT format('CREATE DATABASE %I ENCODING ''UTF8'' TEMPLATE template0', '{quoted}') \
         WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{quoted}') \\gexec\n"
    );
    execute(&with_database(admin_url, "postgres")?, &statement)
}

/// Runs an SQL script as the user of the URL.
pub fn execute(url: &str, script: &str) -> Result<()> {
    execute_with(url, script, &[])
}

fn execute_with(url: &str, script: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut attempt = 1;
    loop {
        let mut psql = client::psql(url)?;
        psql.args(["--file", "-"]).envs(variables.iter().copied());
        let outcome = process::run(&mut psql, script.as_bytes());
        let is_conflict = outcome.as_ref().is_err_and(|error| {
            let message = error.to_string();
            message.contains("concurrently updated") || message.contains("duplicate key value")
        });
        if !is_conflict || attempt == MAX_ATTEMPTS {
            return outcome.map(drop);
        }
        thread::sleep(Duration::from_millis(50) * attempt);
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_urls_keep_host_database_and_parameters() {
        let passwords = Roles {
            users_owner: "a".into(),
            users_service: "b".into(),
            people_task_owner: "c".into(),
            people_task_service: "d".into(),
        };
        let urls = Roles::urls(
            "postgres://root:pw@db:5/countersign?sslmode=disable",
            &passwords,
        )
        .unwrap();
        assert_eq!(
            urls.users_owner,
            "postgres://users_owner:a@db:5/countersign?sslmode=disable"
        );
        assert_eq!(
            urls.people_task_service,
            "postgres://people_task_service:d@db:5/countersign?sslmode=disable"
        );
    }
}
