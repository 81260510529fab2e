//! The user service over HTTP: each test starts the real service in this process, with its own database, and with its
//! own vhost if it runs a worker.
#![expect(
    clippy::unwrap_used,
    reason = "shared code of tests may panic like the tests themselves"
)]

mod audit;
mod audit_append_only;
mod audit_list;
mod audit_partitions;
mod authorization;
mod back_off;
mod change_during_deletion;
mod code_limits;
mod codes_upgrade;
mod create_user;
mod delete_user;
mod deletion_worker;
mod fixture;
mod incarnation;
mod keys;
mod list_users;
mod long_lists;
mod metadata;
mod notification_worker;
mod passwords;
mod revocations;
mod revoke_tokens;
mod service_accounts;
mod session_endings;
mod sessions;
mod sign_in;
mod sign_up;
mod update_user;
mod users;
mod verify_email;
