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
mod list_users;
mod notification_worker;
mod passwords;
mod revocations;
mod sign_in;
mod sign_up;
mod support;
mod update_user;
mod users;
mod verify_email;
