//! The tables of the schema `people_task`, as the migrations create them. Names are unqualified: the role's
//! search path selects the schema.

use diesel::sql_types::{Binary, Nullable, Text};

/// The migrations of the schema. Both processes run them when they start.
pub const MIGRATIONS: diesel_migrations::EmbeddedMigrations =
    diesel_migrations::embed_migrations!("migrations");

/// The Postgres schema that both processes use.
pub const SCHEMA: &str = "people_task";

diesel::table! {
    tasks (id) {
        id -> Binary,
        creator -> Binary,
        requester -> Text,
        approver -> Text,
        requester_key -> Text,
        approver_key -> Text,
        title -> Text,
        description -> Text,
        decision_by -> Nullable<Timestamptz>,
        status -> Text,
        public -> Bool,
        approver_secret -> Binary,
        requester_secret -> Binary,
        created -> Timestamptz,
        mtime -> Timestamptz,
        decision_made -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    webhooks (id) {
        id -> Binary,
        task_id -> Binary,
        registered_by -> Binary,
        url -> Text,
        secret -> Nullable<Text>,
        status -> Text,
        with_task_id -> Bool,
        created -> Timestamptz,
    }
}

diesel::table! {
    deliveries (id) {
        id -> Binary,
        webhook_id -> Binary,
        task_id -> Binary,
        origin -> Text,
        status -> Text,
        attempts -> Integer,
        request_id -> Text,
        traceparent -> Text,
        created -> Timestamptz,
        next_attempt -> Timestamptz,
        republish_at -> Timestamptz,
        lease_until -> Nullable<Timestamptz>,
        lease -> BigInt,
        finished -> Nullable<Timestamptz>,
        parked -> Bool,
        claims_without_result -> Integer,
    }
}

diesel::table! {
    delivery_attempts (delivery_id, number) {
        delivery_id -> Binary,
        number -> Integer,
        at -> Timestamptz,
        duration_ms -> Integer,
        status_code -> Nullable<Integer>,
        error -> Nullable<Text>,
        response -> Nullable<Text>,
    }
}

diesel::table! {
    erased_users (pseudonym, incarnation) {
        pseudonym -> Binary,
        incarnation -> Text,
        erased -> Timestamptz,
    }
}

diesel::define_sql_function! {
    /// Whether a user with a token of this incarnation may add rows.
    fn may_add_rows(who: Binary, of_token: Nullable<Text>) -> Bool;
}

diesel::define_sql_function! {
    /// Records that a user is being erased. It waits for transactions that may still add rows for the user.
    fn record_erased_user(who: Binary, of_incarnation: Nullable<Text>);
}

diesel::joinable!(webhooks -> tasks (task_id));
diesel::joinable!(deliveries -> webhooks (webhook_id));
diesel::joinable!(deliveries -> tasks (task_id));
diesel::joinable!(delivery_attempts -> deliveries (delivery_id));
diesel::allow_tables_to_appear_in_same_query!(tasks, webhooks, deliveries, delivery_attempts);
