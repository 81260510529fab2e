//! The user service over HTTP: each test starts the real service in this process, with a database and a
//! vhost of its own.
#![expect(
    clippy::unwrap_used,
    reason = "what is shared by tests may panic like the tests themselves"
)]

mod audit;
mod audit_append_only;
mod audit_list;
mod code_limits;
mod delete_user;
mod deletion_worker;
mod deletion_worker_cancel;
mod deletion_worker_crashes;
mod deletion_worker_stage;
mod deletion_worker_together;
mod list_users;
mod notification_worker;
mod notification_worker_channels;
mod notification_worker_mail;
mod notification_worker_smtp;
mod notification_worker_stage;
mod passwords;
mod revocations;
mod sign_in;
mod sign_up;
mod support;
mod update_user;
mod users;
mod verify_email;
