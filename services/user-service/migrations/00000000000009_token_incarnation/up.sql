-- What revokes tokens besides a user's epoch: another incarnation of the database, and the end of the longest
-- lifetime of any token. Also the users that were deleted, whose tokens are revoked without a row in `users`.

-- One row. A new value revokes all tokens. It is random, so that a restore cannot bring an old one back.
CREATE TABLE token_generation (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    generation text NOT NULL DEFAULT gen_random_uuid()::text
);

INSERT INTO token_generation DEFAULT VALUES;

-- Differs after every restore of a backup, but not after a restart, VACUUM FULL or REINDEX:
-- - the cluster's identifier, if it is restored into another cluster,
-- - the timeline, after recovery to a point in time and after the promotion of a standby,
-- - the identifier of the database, if it is restored into another one,
-- - the identifier of the table, if pg_restore creates it,
-- - and the generation, if an operator changes it, because some restores change nothing else.
CREATE FUNCTION database_incarnation() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text;
    timeline text;
BEGIN
    BEGIN
        SELECT system_identifier INTO cluster FROM pg_catalog.pg_control_system();
        timeline = left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
        -- Some managed servers refuse these functions.
        cluster = NULL;
    END;
    RETURN left(encode(sha256(convert_to(jsonb_build_array(
        cluster,
        timeline,
        (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
        to_regclass('users.users')::oid,
        (SELECT generation FROM users.token_generation)
    )::text, 'UTF8')), 'hex'), 16);
END $$;

-- The lifetimes of tokens, and when each was last in use. A replica records its own before it signs, and then
-- every few minutes.
CREATE TABLE token_lifetimes (
    seconds bigint PRIMARY KEY CHECK (seconds > 0),
    last_used timestamptz NOT NULL DEFAULT now()
);

-- Deleted users whose tokens may not have expired. The feed reads them like users.
CREATE TABLE deleted_users (
    user_id bytea PRIMARY KEY CHECK (octet_length(user_id) = 12),
    deleted timestamptz NOT NULL DEFAULT now(),
    epoch_transaction bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint
);

CREATE INDEX deleted_users_by_deleted ON deleted_users (deleted, user_id);
CREATE INDEX deleted_users_by_epoch_transaction ON deleted_users (epoch_transaction, user_id);

INSERT INTO deleted_users (user_id, deleted)
SELECT user_id, max(finished) FROM deletions
WHERE epoch_transaction IS NOT NULL AND finished IS NOT NULL
GROUP BY user_id;

CREATE FUNCTION note_deleted_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO users.deleted_users (user_id) SELECT id FROM gone
    ON CONFLICT (user_id) DO UPDATE
    SET deleted = excluded.deleted, epoch_transaction = excluded.epoch_transaction;
    RETURN NULL;
END $$;

CREATE TRIGGER users_note_deleted AFTER DELETE ON users REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_users();

-- The feed reads everything in this order, and changes in the order of epoch_transaction.
CREATE INDEX users_by_epoch_raised ON users (epoch_raised, id) WHERE epoch_raised IS NOT NULL;
