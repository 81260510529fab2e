//! The settings of the two processes.

mod mails;
mod people_task_service;
mod webhook_worker;

pub use mails::MailSettings;
pub use people_task_service::PeopleTaskServiceSettings;
pub use webhook_worker::WebhookWorkerSettings;
