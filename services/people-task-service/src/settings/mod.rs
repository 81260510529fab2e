//! The settings of the two processes.

mod people_task_service;
mod webhook_worker;

pub use people_task_service::PeopleTaskServiceSettings;
pub use webhook_worker::WebhookWorkerSettings;
