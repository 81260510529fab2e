-- The functions run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION pseudonymise_audit_log(who bytea, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    pseudonym bytea := substring(sha256(who) FOR 12);
    changed bigint;
BEGIN
    UPDATE audit_log SET
        actor_id = CASE WHEN actor_id = who THEN pseudonym ELSE actor_id END,
        subject_id = CASE WHEN subject_id = who THEN pseudonym ELSE subject_id END
    WHERE (at, id) IN (
        SELECT at, id FROM audit_log WHERE actor_id = who
        UNION
        SELECT at, id FROM audit_log WHERE subject_id = who
        LIMIT most
    );
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN changed;
END $$;

CREATE OR REPLACE FUNCTION forget_audit_addresses(whose bytea[], most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    forgotten bigint;
BEGIN
    UPDATE audit_log SET client_address = NULL WHERE (at, id) IN (
        SELECT at, id FROM audit_log
        WHERE actor_id = ANY (whose) AND client_address IS NOT NULL
        UNION ALL
        SELECT at, id FROM audit_log
        WHERE subject_id = ANY (whose) AND actor_id IS NULL AND client_address IS NOT NULL
        LIMIT most
    );
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END $$;
