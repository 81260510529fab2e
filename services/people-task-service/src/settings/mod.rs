//! The settings of the two processes.

mod deciders;
mod mails;
mod people_task_service;
mod quotas;
mod webhook_worker;

pub use deciders::DeciderSettings;
pub use mails::MailSettings;
pub use people_task_service::PeopleTaskServiceSettings;
pub use quotas::QuotaSettings;
pub use webhook_worker::WebhookWorkerSettings;
