use std::time::Duration;

use app_config::{Reader, Settings};
use values::Secret;

/// The database and how many connections this process may open.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// The role that reads and writes.
    pub url: Secret,
    /// The role that owns the schema. If it is set, the process runs migrations at its start; otherwise it waits for
    /// them.
    pub owner_url: Option<Secret>,
    /// The maximum number of connections, and threads that use them.
    pub pool_size: u32,
    /// How long a closure may wait for a connection.
    pub timeout: Duration,
}

impl Settings for DatabaseSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        Ok(Self {
            url: reader.required(
                "DATABASE_URL",
                "the Postgres URL of the service's role, `postgres://role:password@host:5432/countersign`.",
            )?,
            owner_url: reader.optional(
                "DATABASE_OWNER_URL",
                "The Postgres URL of the role that owns the schema. If it is set, the process runs pending migrations at its start; otherwise it waits a minute for the command `migrate` to run them.",
            )?,
            pool_size: reader.in_range(
                "DATABASE_POOL_SIZE",
                "32",
                "a whole number from 1 to 200",
                "The maximum number of connections to Postgres; the sum over all processes must stay below its `max_connections`. Services keep a quarter of them, at least one, for lists and counts.",
                |size| (1..=200).contains(size),
            )?,
            timeout: reader.or_default(
                "DATABASE_TIMEOUT",
                "3s",
                "How long a request waits for a connection before it is refused with 503.",
            )?,
        })
    }
}

/// Settings of the command `migrate` of a service.
#[derive(Debug, Clone)]
pub struct OwnerSettings {
    /// The role that owns the schema.
    pub url: Secret,
}

impl Settings for OwnerSettings {
    fn read(reader: &mut Reader) -> Result<Self, app_config::Error> {
        let url = reader.required(
            "DATABASE_OWNER_URL",
            "the Postgres URL of the role that owns the schema, `postgres://role:password@host:5432/countersign`.",
        )?;
        Ok(Self { url })
    }
}
