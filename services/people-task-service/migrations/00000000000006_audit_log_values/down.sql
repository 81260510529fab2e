ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    DROP CONSTRAINT audit_log_actor_kind_check,
    DROP CONSTRAINT audit_log_subject_kind_check,
    DROP CONSTRAINT audit_log_proof_check;
