//! Tests of the running people-task-service and its worker. Each test has its own database, and its own vhost if it runs a
//! worker or cuts off the broker.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "fixtures may panic like the tests that use them"
)]
#![expect(clippy::too_many_lines, reason = "tests may have up to 60 lines")]

mod access;
mod added_columns;
mod all_deliveries;
mod audit;
mod audit_list;
mod audit_partitions;
mod cancel;
mod comments;
mod create_task;
mod creations;
mod decide;
mod deciders;
mod deliveries;
mod delivery_hosts;
mod document;
mod due_date_turns;
mod due_dates;
mod due_dates_upgrade;
mod edit_task;
mod ended_erasures;
mod erasure;
mod erasure_batches;
mod fixture;
mod idempotency;
mod list_tasks;
mod long_lists;
mod mail_limits;
mod mail_turns;
mod mails;
mod metadata;
mod new_secrets;
mod outages;
mod plans;
mod plugin_paths;
mod quotas;
mod read_task;
mod registrants;
mod responses;
mod retention;
mod secrets;
mod stored_json;
mod token_authority;
mod versions;
mod waiting;
mod webhook_calls;
mod webhook_options;
mod webhook_tests;
mod webhook_worker;
mod webhooks;
