//! The view of waiting and finished deliveries.

use crate::schema::{task_states, webhooks};

diesel::table! {
    all_deliveries (id) {
        id -> Binary,
        webhook_id -> Binary,
        task_id -> Binary,
        status -> Text,
        created -> Timestamptz,
        next_attempt -> Nullable<Timestamptz>,
        attempt_log -> Jsonb,
    }
}

diesel::joinable!(all_deliveries -> webhooks (webhook_id));
diesel::joinable!(all_deliveries -> task_states (task_id));
diesel::allow_tables_to_appear_in_same_query!(all_deliveries, webhooks);
diesel::allow_tables_to_appear_in_same_query!(all_deliveries, task_states);
