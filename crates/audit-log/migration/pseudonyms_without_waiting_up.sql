-- The functions run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Two deletions of administrators who changed each other change the same rows of the log. Each takes the rows that no
-- other transaction holds, so that neither waits for the other. A call reads only the rows that it changes.
CREATE OR REPLACE FUNCTION pseudonymise_audit_log(who bytea, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    pseudonym bytea := substring(sha256(who) FOR 12);
    acted bigint;
    concerned bigint;
BEGIN
    UPDATE audit_log SET
        actor_id = pseudonym,
        subject_id = CASE WHEN subject_id = who THEN pseudonym ELSE subject_id END,
        client_address = NULL
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM audit_log WHERE actor_id = who
        ORDER BY at, id LIMIT most FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS acted = ROW_COUNT;
    UPDATE audit_log SET
        subject_id = pseudonym,
        -- The address of another user who changed this one stays.
        client_address = CASE WHEN actor_id IS NULL THEN NULL ELSE client_address END
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM audit_log WHERE subject_id = who
        ORDER BY at, id LIMIT most - acted FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS concerned = ROW_COUNT;
    RETURN acted + concerned;
END $$;

-- Removes the client addresses from at most `most` rows that no other transaction holds: changes that `whose` made,
-- and changes of `whose` that no known user made.
CREATE OR REPLACE FUNCTION forget_audit_addresses(whose bytea[], most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    acted bigint;
    concerned bigint;
BEGIN
    UPDATE audit_log SET client_address = NULL WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM audit_log
        WHERE actor_id = ANY (whose) AND client_address IS NOT NULL
        LIMIT most FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS acted = ROW_COUNT;
    UPDATE audit_log SET client_address = NULL WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM audit_log
        WHERE subject_id = ANY (whose) AND actor_id IS NULL AND client_address IS NOT NULL
        LIMIT most - acted FOR UPDATE SKIP LOCKED
    ));
    GET DIAGNOSTICS concerned = ROW_COUNT;
    RETURN acted + concerned;
END $$;
