//! Tasks that a person approves or rejects, and the webhooks that hear of it.
//!
//! Two processes share this library and the schema `people_task`: the people-task-service
//! ([`run`]) answers HTTP, the webhook-worker ([`run_webhook_worker`]) sends what was decided.
//!
//! Invariants:
//! - A task leaves `pending` once. The decision and one delivery row for each webhook are one transaction,
//!   so a decision that was answered is delivered even if every process dies right after.
//! - Who may do what to a task stands in one table, `tasks::access`; no route has rules of its own.
//! - Secrets are stored as hashes and never logged.
//!
//! Deliberately absent: user accounts (relations go by the token's claims), and sending inside a request.

mod app;
mod audit;
pub mod deliveries;
mod erasure;
mod plugins;
mod problems;
mod schema;
#[cfg(test)]
mod schema_tests;
mod settings;
mod status;
mod tasks;
mod webhooks;

pub use app::{openapi, run};
pub use deliveries::worker::run as run_webhook_worker;
pub use settings::{PeopleTaskServiceSettings, WebhookWorkerSettings};
pub use webhooks::signing::SigningSettings;

/// The migrations of the schema `people_task`, which both processes run at their start.
pub const MIGRATIONS: diesel_migrations::EmbeddedMigrations =
    diesel_migrations::embed_migrations!("migrations");

/// The schema that both processes own.
pub const SCHEMA: &str = "people_task";
