//! Tasks that a person approves or rejects, and the webhooks that are called with the decision or when it is due.
//!
//! Two processes share this library and the schema `people_task`: the people-task-service
//! ([`run`]) serves HTTP, the webhook-worker ([`run_webhook_worker`]) delivers decisions and passed due dates.
//!
//! Invariants:
//! - A task leaves `pending` once. The decision and one delivery row for each webhook are one transaction,
//!   so a confirmed decision is delivered even if every process crashes right after.
//! - One table, `tasks::access`, says who may do what to a task; no route has its own rules.
//! - Secrets are stored as hashes and never logged.
//!
//! Deliberately absent: user accounts (the token's claims say who the caller is), and calling webhooks
//! inside a request.

mod app;
mod audit;
mod canonical_json;
mod changed_users;
mod context;
mod creations;
mod decisions;
pub mod deliveries;
mod erasure;
mod error;
mod free_rows;
mod header_keys;
mod idempotency;
mod mailing;
mod mails;
mod planning;
mod plugin_paths;
mod programs;
mod quotas;
mod schema;
#[cfg(test)]
mod schema_tests;
mod settings;
mod status;
mod tasks;
mod turns;
mod webhook_options;
mod webhook_signature;
mod webhooks;

pub use app::{openapi, run};
pub use deliveries::worker::run as run_webhook_worker;
pub use header_keys::HeaderKeys;
pub use programs::PROGRAMS;
pub use schema::{MIGRATIONS, SCHEMA};
pub use settings::{
    DeciderSettings, MailSettings, PeopleTaskServiceSettings, QuotaSettings, WebhookWorkerSettings,
};
pub use webhook_signature::SigningSettings;
