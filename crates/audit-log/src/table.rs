//! The table that the migration creates in the schema of each service. Names are unqualified: the search path
//! of the role selects the schema.

diesel::table! {
    audit_log (at, id) {
        id -> BigInt,
        at -> Timestamptz,
        action -> Text,
        actor_kind -> Text,
        actor_id -> Nullable<Binary>,
        subject_kind -> Nullable<Text>,
        subject_id -> Nullable<Binary>,
        proof -> Nullable<Text>,
        client_address -> Nullable<Inet>,
        request_id -> Text,
        detail -> Nullable<Jsonb>,
    }
}
