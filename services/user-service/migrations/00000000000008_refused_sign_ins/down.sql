SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    before timestamptz := now() - older_than;
    pruned bigint;
BEGIN
    IF before IS NULL OR before > now() - interval '30 days' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the audit log is kept for 30 days at least';
    END IF;
    DELETE FROM audit_log WHERE (at, id) IN (
        SELECT at, id FROM audit_log WHERE at < before
        ORDER BY at, id LIMIT most FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END $$;

DROP INDEX audit_log_without_subject;

-- Rows with the new value stay.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'email-verified', 'signed-in',
        'sign-in-refused', 'password-changed', 'password-reset-requested', 'password-reset',
        'user-deletion-requested', 'user-deletion-cancelled', 'user-deletion-failed', 'user-deleted'
    )) NOT VALID;

DROP TABLE sign_in_refusals;
