//! The people-task-service and its worker, started for real, each test with a database and a vhost of its
//! own.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "what is shared by tests may panic like the tests themselves"
)]
#![expect(clippy::too_many_lines, reason = "a test tells its story in one go")]

mod access;
mod app;
mod audit;
mod audit_list;
mod create_task;
mod decide;
mod deliveries;
mod document;
mod edit_task;
mod erasure;
mod list_tasks;
mod newer_paths;
mod outages;
mod read_task;
mod secrets;
mod signing;
mod webhook_worker;
mod webhook_worker_fairness;
mod webhook_worker_recovery;
mod webhook_worker_retries;
mod webhook_worker_stage;
mod webhooks;
