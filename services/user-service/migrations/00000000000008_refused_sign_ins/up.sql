-- Refused sign-ins: refused changes of a password are logged, too, and no client network fills the audit log.

-- How many sign-ins were refused for each client network, of users and of unknown names, in each hour of the last
-- day. Those over a limit have no row in the audit log.
CREATE TABLE sign_in_refusals (
    client_network text NOT NULL,
    known_user boolean NOT NULL,
    hour timestamptz NOT NULL,
    refusals integer NOT NULL,
    PRIMARY KEY (client_network, known_user, hour)
);

CREATE INDEX sign_in_refusals_by_hour ON sign_in_refusals (hour);

-- Existing rows have one of the values that were allowed before, so they need not be checked.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'email-verified', 'signed-in',
        'sign-in-refused', 'password-changed', 'password-change-refused', 'password-reset-requested',
        'password-reset', 'user-deletion-requested', 'user-deletion-cancelled', 'user-deletion-failed',
        'user-deleted'
    )) NOT VALID;

-- What unknown callers did to no known user: refused sign-ins and requests for codes under unknown names.
CREATE INDEX audit_log_without_subject ON audit_log (at, id) WHERE subject_id IS NULL AND actor_id IS NULL;

-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Deletes the oldest rows, at most `most`, but none of the last 30 days. Rows without a subject are deleted after
-- 30 days, however long the others are kept.
CREATE OR REPLACE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    latest timestamptz := now() - interval '30 days';
    before timestamptz := now() - older_than;
    without_subject bigint;
    pruned bigint;
BEGIN
    -- Compares the resulting time and not the interval, because an interval of months and negative days
    -- is longer than it looks.
    IF before IS NULL OR before > latest THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the audit log is kept for 30 days at least';
    END IF;
    DELETE FROM audit_log WHERE (at, id) IN (
        SELECT at, id FROM audit_log WHERE subject_id IS NULL AND actor_id IS NULL AND at < latest
        ORDER BY at, id LIMIT most FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS without_subject = ROW_COUNT;
    DELETE FROM audit_log WHERE (at, id) IN (
        SELECT at, id FROM audit_log WHERE at < before
        ORDER BY at, id LIMIT most - without_subject FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN without_subject + pruned;
END $$;
