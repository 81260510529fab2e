#![expect(clippy::unwrap_used, reason = "x")]
#[path = "../it/signing.rs"]
mod signing;
#[path = "../it/webhook_worker.rs"]
mod webhook_worker;
#[path = "../it/webhook_worker_fairness.rs"]
mod webhook_worker_fairness;
#[path = "../it/webhook_worker_recovery.rs"]
mod webhook_worker_recovery;
#[path = "../it/webhook_worker_retries.rs"]
mod webhook_worker_retries;
#[path = "../it/webhook_worker_stage.rs"]
mod webhook_worker_stage;
