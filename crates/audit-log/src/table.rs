//! The table, as the migrations of each service make it. Names are unqualified: the role's search path
//! selects the schema.

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
