//! The migrations of the schema `users`, and its tables as diesel knows them: those that only raw SQL names are absent. The
//! role's search path selects the schema, so table names are unqualified. A column with a `sql_name` has another name in the database, where
//! renaming it would need two releases.

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

/// The schema of this service.
pub const SCHEMA: &str = "users";
/// The migrations of the schema `users`.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!();

diesel::table! {
    users (id) {
        id -> Binary,
        username -> Text,
        email -> Text,
        username_key -> Text,
        email_key -> Text,
        password_hash -> Text,
        is_active -> Bool,
        plan -> Text,
        scope -> Array<Text>,
        vendor -> Nullable<Jsonb>,
        allowed_private_components -> Array<Text>,
        metadata -> Jsonb,
        epoch -> BigInt,
        epoch_raised -> Nullable<Timestamptz>,
        epoch_transaction -> Nullable<BigInt>,
        code_generation -> BigInt,
        created -> Timestamptz,
        mtime -> Timestamptz,
        deletion_in_progress -> Bool,
        email_confirmed -> Nullable<Timestamptz>,
        email_since -> Timestamptz,
        reactivated -> Nullable<Timestamptz>,
        segment -> BigInt,
        access_changed -> Nullable<Timestamptz>,
        account_group -> Nullable<Binary>,
        is_service -> Bool,
    }
}

diesel::table! {
    sign_up_networks (network_hash) {
        network_hash -> Binary,
        account_group -> Binary,
        last_sign_up -> Timestamptz,
    }
}

diesel::table! {
    user_changes (user_id) {
        user_id -> Binary,
        changed -> Timestamptz,
        attempts -> BigInt,
        next_attempt -> Timestamptz,
    }
}

diesel::table! {
    last_sign_ins (user_id) {
        user_id -> Binary,
        at -> Nullable<Timestamptz>,
        segment -> BigInt,
    }
}

diesel::table! {
    codes (fingerprint) {
        fingerprint -> Binary,
        user_id -> Binary,
        purpose -> Text,
        #[sql_name = "generation"]
        code_generation -> BigInt,
        email_key -> Nullable<Text>,
        created -> Timestamptz,
        expires -> Timestamptz,
    }
}

diesel::table! {
    notifications (id) {
        id -> Binary,
        user_id -> Nullable<Binary>,
        kind -> Text,
        channel -> Text,
        status -> Text,
        lease -> BigInt,
        last_error -> Nullable<Text>,
        request_id -> Text,
        traceparent -> Text,
        created -> Timestamptz,
        next_attempt -> Timestamptz,
        republish_at -> Timestamptz,
        lease_until -> Nullable<Timestamptz>,
        finished -> Nullable<Timestamptz>,
        #[sql_name = "generation"]
        code_generation -> Nullable<BigInt>,
        key_name -> Nullable<Text>,
        key_expires -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    former_emails (user_id, id) {
        id -> BigInt,
        user_id -> Binary,
        email_key -> Text,
        since -> Timestamptz,
        until -> Timestamptz,
    }
}

diesel::table! {
    deletions (id) {
        id -> Binary,
        ticket -> Text,
        user_id -> Binary,
        status -> Text,
        steps_total -> Integer,
        steps_done -> Integer,
        failure -> Nullable<Jsonb>,
        request_id -> Text,
        traceparent -> Text,
        created -> Timestamptz,
        next_attempt -> Timestamptz,
        republish_at -> Timestamptz,
        lease_until -> Nullable<Timestamptz>,
        lease -> BigInt,
        finished -> Nullable<Timestamptz>,
        started -> Timestamptz,
        email_trusted -> Bool,
        deleted_tasks -> BigInt,
    }
}

diesel::table! {
    deletion_settings (one_row) {
        one_row -> Bool,
        with_engine -> Bool,
        recorded -> Timestamptz,
        confirmation_required -> Nullable<Bool>,
    }
}

diesel::table! {
    deletion_steps (deletion_id, position) {
        deletion_id -> Binary,
        position -> Integer,
        name -> Text,
        attempts -> Integer,
        last_error -> Nullable<Text>,
        finished -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    sign_in_failures (name_hash, client_network) {
        #[sql_name = "account"]
        name_hash -> Binary,
        #[sql_name = "client_address"]
        client_network -> Text,
        failures -> Integer,
        blocked_until -> Nullable<Timestamptz>,
        last_failure -> Timestamptz,
    }
}

diesel::table! {
    known_networks (user_id, network_hash) {
        user_id -> Binary,
        network_hash -> Binary,
        last_sign_in -> Timestamptz,
    }
}

diesel::table! {
    sign_in_refusals (client_network, known_user, hour) {
        client_network -> Text,
        known_user -> Bool,
        hour -> Timestamptz,
        refusals -> Integer,
    }
}

diesel::table! {
    code_requests (counted, subject) {
        counted -> Text,
        subject -> Binary,
        forgotten_at -> Timestamptz,
    }
}

diesel::table! {
    token_generation (one_row) {
        #[sql_name = "singleton"]
        one_row -> Bool,
        generation -> Text,
    }
}

diesel::table! {
    token_lifetimes (seconds) {
        seconds -> BigInt,
        last_used -> Timestamptz,
    }
}

diesel::table! {
    credentials (id) {
        id -> Binary,
        user_id -> Binary,
        kind -> Text,
        fingerprint -> Binary,
        secret -> Nullable<Binary>,
        earlier_secret -> Nullable<Binary>,
        attempt -> Nullable<Binary>,
        incarnation -> Text,
        created -> Timestamptz,
        last_used -> Timestamptz,
        expires -> Timestamptz,
        client_network -> Text,
        program -> Text,
        name -> Nullable<Text>,
        scopes -> Nullable<Array<Text>>,
        created_by -> Nullable<Binary>,
        used -> Nullable<Timestamptz>,
        notice_due -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    ended_credentials (credential_id) {
        credential_id -> Binary,
        ended -> Timestamptz,
        end_transaction -> BigInt,
    }
}

#[diesel::declare_sql_function]
extern "SQL" {
    /// The incarnation of the database, which its tokens name.
    fn database_incarnation() -> Text;

    /// The time of the call. `now` is the time when the transaction began, perhaps before it waited for a lock.
    fn clock_timestamp() -> Timestamptz;
}

diesel::joinable!(codes -> users (user_id));
diesel::joinable!(credentials -> users (user_id));
diesel::joinable!(deletion_steps -> deletions (deletion_id));
diesel::joinable!(user_changes -> users (user_id));
diesel::allow_tables_to_appear_in_same_query!(
    codes,
    credentials,
    deletion_steps,
    deletions,
    notifications,
    user_changes,
    users,
);
