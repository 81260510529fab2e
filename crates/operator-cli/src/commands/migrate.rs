use anyhow::Context as _;
use clap::{Args, ValueEnum};
use database::{OwnerSettings, migrate};
use serde_json::json;

use crate::Outcome;
use crate::output::Output;

const EXAMPLES: &str = "\
DATABASE_OWNER_URL must be the URL of the role that owns the schema. Services have no such role: see the jobs `migrate-users` and
`migrate-people-task` of docker-compose.yml.

Example:
  docker compose run --rm migrate-users countersign migrate users";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The schema.
    #[arg(value_enum)]
    schema: Schema,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Schema {
    Users,
    PeopleTask,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> Outcome {
    let owner: OwnerSettings = super::settings()?;
    let (schema, migrations) = match arguments.schema {
        Schema::Users => (user_service::SCHEMA, user_service::MIGRATIONS),
        Schema::PeopleTask => (people_task_service::SCHEMA, people_task_service::MIGRATIONS),
    };
    let migrated = super::runtime()?.block_on(migrate(&owner.url, schema, migrations));
    migrated.with_context(|| format!("the schema {schema} could not be migrated"))?;
    let sentence = format!("The schema {schema} is up to date.");
    output.done(&sentence, &json!({"schema": schema}))
}
