use std::time::Duration;

use values::Secret;

app_config::settings! {
    /// The database and how many connections this process may open.
    pub struct DatabaseSettings {
        /// The role that reads and writes.
        pub url: Secret = required(
            "DATABASE_URL",
            "the Postgres URL of the service's role, `postgres://role:password@host:5432/countersign`."
        ),
        /// The Postgres URL of the role that owns the schema. If it is set, the process runs pending migrations at its
        /// start; otherwise it waits a minute for the command `migrate` to run them.
        pub owner_url: Option<Secret> = optional("DATABASE_OWNER_URL"),
        /// The maximum number of connections to Postgres; the sum over all processes must stay below its `max_connections`.
        /// Services keep a quarter of them, at least one, for lists and counts.
        pub pool_size: u32 =
            in_range("DATABASE_POOL_SIZE", "32", "a whole number from 1 to 200", |size| (1..=200).contains(size)),
        /// How long a request waits for a connection before it is refused with 503.
        pub timeout: Duration = or_default("DATABASE_TIMEOUT", "3s"),
    }

    /// Settings of the command `migrate` of a service.
    pub struct OwnerSettings {
        /// The role that owns the schema.
        pub url: Secret = required(
            "DATABASE_OWNER_URL",
            "the Postgres URL of the role that owns the schema, `postgres://role:password@host:5432/countersign`."
        ),
    }
}
