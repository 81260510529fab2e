//! The audit log of tasks. Each capability writes its rows together with its changes; this module has the
//! names of the actions, and the administrators' list.

mod action;
pub(crate) mod routes;

pub(crate) use action::{AuditAction, AuditIdentity};

/// The text of a statement that inserts the audit entries that `$select` returns, in the column `entry`, in the form of
/// [`Entry::to_json`](audit_log::Entry::to_json).
macro_rules! insert_entries {
    ($select:literal) => {
        concat!(
            "INSERT INTO audit_log (action, actor_kind, actor_id, subject_kind, subject_id, proof, client_address,
                request_id, detail)
            SELECT field.action, field.actor_kind, decode(field.actor_id, 'hex'), field.subject_kind,
                decode(field.subject_id, 'hex'), field.proof, field.client_address, field.request_id,
                nullif(field.detail, 'null')
            FROM (",
            $select,
            ") AS changed CROSS JOIN jsonb_to_record(changed.entry) AS field (action text, actor_kind text,
                actor_id text, subject_kind text, subject_id text, proof text, client_address inet, request_id text,
                detail jsonb)"
        )
    };
}

pub(crate) use insert_entries;
