-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
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
    WITH free AS (
        SELECT at, id FROM audit_log WHERE subject_id IS NULL AND actor_id IS NULL AND at < latest
        LIMIT most FOR UPDATE SKIP LOCKED
    )
    DELETE FROM audit_log AS log USING free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS without_subject = ROW_COUNT;
    WITH free AS (
        SELECT at, id FROM audit_log_default WHERE at < before
        ORDER BY at LIMIT most - without_subject FOR UPDATE SKIP LOCKED
    )
    DELETE FROM audit_log_default AS log USING free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN without_subject + pruned;
END $$;
