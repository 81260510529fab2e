-- The audit log of a service: who changed what, when, from which address. Rows are only ever added. They hold
-- identifiers and no names, and pseudonyms once a user is deleted.
--
-- Every service applies this file to its own schema. A later migration of the service adds the constraints
-- that list its actions, actors, subjects and proofs.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    action text NOT NULL,
    actor_kind text NOT NULL,
    actor_id bytea CHECK (octet_length(actor_id) = 12),
    subject_kind text,
    subject_id bytea CHECK (octet_length(subject_id) = 12),
    -- How the actor was authenticated.
    proof text,
    client_address inet,
    request_id text NOT NULL CHECK (char_length(request_id) BETWEEN 1 AND 128),
    -- Names of changed fields, identifiers and numbers.
    detail jsonb CHECK (jsonb_typeof(detail) = 'object'),
    PRIMARY KEY (at, id),
    CHECK ((actor_kind IN ('user', 'admin')) = (actor_id IS NOT NULL)),
    CHECK ((subject_kind IS NULL) = (subject_id IS NULL))
);

-- One index for each filter, in the default order. The primary key serves the default order itself and filters
-- by time.
CREATE INDEX audit_log_by_action ON audit_log (action, at, id);
CREATE INDEX audit_log_by_actor ON audit_log (actor_id, at, id) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_by_subject ON audit_log (subject_id, at, id) WHERE subject_id IS NOT NULL;
CREATE INDEX audit_log_by_request ON audit_log (request_id);

-- The functions run with the owner's rights. Their effect is fixed: a caller can neither choose single rows nor
-- write values.

-- Deletes the oldest rows, at most `most`, but none of the last 30 days.
CREATE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    before timestamptz := now() - older_than;
    pruned bigint;
BEGIN
    -- Compares the resulting time and not the interval, because an interval of months and negative days
    -- is longer than it looks.
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

-- Removes the client addresses from at most `most` rows: changes that `whose` made, and changes of `whose` that
-- no known user made.
CREATE FUNCTION forget_audit_addresses(whose bytea[], most integer) RETURNS bigint
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

-- Replaces the identifier of a deleted user by a pseudonym in at most `most` rows. The pseudonym is derived from
-- the identifier, so the user's rows still belong together, and can be found by the identifier.
CREATE FUNCTION pseudonymise_audit_log(who bytea, most integer) RETURNS bigint
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

-- Every role that may insert into new tables may insert into this one, except the columns `id` and `at`, and may
-- call the functions. No role but the owner may change rows.
REVOKE ALL ON FUNCTION prune_audit_log, forget_audit_addresses, pseudonymise_audit_log FROM PUBLIC;
DO $$
DECLARE
    role text;
    inserts boolean;
BEGIN
    FOR role, inserts IN
        SELECT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END,
            bool_or(granted.privilege_type = 'INSERT')
        FROM pg_catalog.pg_class AS class, aclexplode(class.relacl) AS granted
        WHERE class.oid = 'audit_log'::regclass AND granted.grantee <> class.relowner
        GROUP BY granted.grantee
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON audit_log FROM %s', role);
        IF inserts THEN
            EXECUTE format('GRANT INSERT (action, actor_kind, actor_id, subject_kind, subject_id, proof,
                client_address, request_id, detail) ON audit_log TO %s', role);
            EXECUTE format('GRANT EXECUTE ON FUNCTION prune_audit_log, forget_audit_addresses,
                pseudonymise_audit_log TO %s', role);
        END IF;
    END LOOP;
END $$;
