-- Erased users. A service that cannot read the revocation feed accepts their tokens, but none of them adds a row
-- after the erasure.

CREATE TABLE erased_users (
    -- As in the audit log: the identifier itself is not kept.
    pseudonym bytea NOT NULL CHECK (octet_length(pseudonym) = 12),
    -- The incarnation of the user service's database; empty if unknown. After a restore the user may exist again,
    -- with tokens of another one.
    incarnation text NOT NULL,
    erased timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pseudonym, incarnation)
);

CREATE INDEX erased_users_by_erased ON erased_users (erased);

CREATE FUNCTION erasure_lock(who bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(encode(who, 'hex'), 0)
$$;

-- Whether a user may add rows. An erasure waits for the transaction that asks, and then deletes what it added. So
-- the lock must come before the answer, which each statement of this function reads from a new snapshot.
CREATE FUNCTION may_add_rows(who bytea, of_token text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(people_task.erasure_lock(who));
    RETURN NOT EXISTS (
        SELECT FROM people_task.erased_users
        WHERE pseudonym = substring(sha256(who) FOR 12)
            AND (of_token IS NULL OR incarnation IN ('', of_token))
    );
END $$;

-- Records that a user is being erased, when no transaction that may still add rows for the user is left.
CREATE FUNCTION record_erased_user(who bytea, of_incarnation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(people_task.erasure_lock(who));
    INSERT INTO people_task.erased_users (pseudonym, incarnation)
    VALUES (substring(sha256(who) FOR 12), coalesce(of_incarnation, ''))
    ON CONFLICT DO NOTHING;
END $$;
