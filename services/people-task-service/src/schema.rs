//! The migrations of the schema `people_task`, and its tables as diesel knows them: those that only raw SQL names are
//! absent. Names are unqualified: the role's search path selects the schema.

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
        public -> Bool,
        approver_secret -> Binary,
        requester_secret -> Binary,
        created -> Timestamptz,
        comment_required -> Bool,
        content_version -> BigInt,
        confirmation_required -> Bool,
        deciders -> Nullable<Text>,
        self_approval -> Bool,
        reading_secret -> Nullable<Binary>,
        metadata -> Nullable<Text>,
        requester_since -> Nullable<Timestamptz>,
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
        host -> Text,
        on_approved -> Bool,
        on_rejected -> Bool,
        on_due -> Bool,
        last_due -> Nullable<Timestamptz>,
        registered_as -> Nullable<Text>,
        registrant_email -> Nullable<Text>,
        registrant_secret -> Nullable<Binary>,
        lane -> Nullable<Text>,
        options -> Nullable<Text>,
        header_key -> Nullable<Text>,
        on_cancelled -> Bool,
    }
}

diesel::table! {
    deliveries (id) {
        id -> Binary,
        webhook_id -> Binary,
        task_id -> Binary,
        host -> Text,
        request_id -> Text,
        traceparent -> Text,
        created -> Timestamptz,
        next_attempt -> Timestamptz,
        worker_id -> Nullable<Integer>,
        lease -> Integer,
        attempts -> Integer,
        lost_claims -> Nullable<Integer>,
        lost_trials -> Integer,
        on_trial -> Bool,
        attempt_log -> Jsonb,
        due_at -> Nullable<Timestamptz>,
        suspended_for -> Nullable<Binary>,
        lane -> Text,
        has_options -> Nullable<Bool>,
        option_claims -> Integer,
    }
}

/// The part `allowed` of a statement: those of these users, with tokens of these incarnations, who may add rows. Each is
/// asked for once in a batch, because asking takes a fifth of the time of a decision.
macro_rules! allowed_users {
    ($users_and_incarnations:literal) => {
        concat!(
            "allowed AS MATERIALIZED (SELECT * FROM (SELECT DISTINCT * FROM unnest(",
            $users_and_incarnations,
            ") AS given (who, of_token)) AS users WHERE may_add_rows(who, of_token))"
        )
    };
}

pub(crate) use allowed_users;

diesel::allow_tables_to_appear_in_same_query!(webhooks, deliveries);
