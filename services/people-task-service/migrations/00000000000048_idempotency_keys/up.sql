-- Requests that may be repeated, with what was answered. A row is inserted with what its request adds, and kept for a day.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE idempotency_keys (
    -- An HMAC of the user, the operation and the key that the caller chose, which can be guessed.
    key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
    user_id bytea NOT NULL CHECK (octet_length(user_id) = 12),
    task_id bytea NOT NULL CHECK (octet_length(task_id) = 12),
    -- An HMAC of the canonical form of the body.
    body bytea NOT NULL CHECK (octet_length(body) = 32),
    -- The body of the answer, without secrets.
    answer text NOT NULL,
    -- What the secrets of a new task are derived from, together with a key that is not in the database: 16 bytes for the
    -- approver's and 16 for the requester's; null if the answer has none.
    seeds bytea CHECK (octet_length(seeds) = 32),
    -- SHA-256 hashes of these secrets, by which the key is found from which they were derived.
    secrets bytea CHECK (octet_length(secrets) = 64),
    created timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idempotency_keys_by_created ON idempotency_keys (created);
CREATE INDEX idempotency_keys_by_task ON idempotency_keys (task_id);
CREATE INDEX idempotency_keys_by_user ON idempotency_keys (user_id);

-- What is counted for a user, as in `subtract_stored_bytes`.
CREATE FUNCTION subtract_bytes_of_answers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE stored_bytes SET bytes = stored_bytes.bytes - freed.bytes
    FROM (SELECT user_id, sum(octet_length(answer))::bigint AS bytes FROM deleted GROUP BY user_id) AS freed
    WHERE stored_bytes.user_id = freed.user_id;
    RETURN NULL;
END $$;
CREATE TRIGGER subtract_bytes_of_answers AFTER DELETE ON idempotency_keys REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION subtract_bytes_of_answers();

CREATE OR REPLACE FUNCTION delete_rows_of_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
    -- A delivery is finished after its task was created. The clock may have been set back since then.
    since timestamptz := (SELECT min(created) FROM deleted) - interval '1 day';
    until timestamptz := clock_timestamp() + interval '1 day';
BEGIN
    -- First, because a decision or a registration that is under way adds rows until it ends.
    DELETE FROM task_states WHERE task_id = ANY (ids);
    DELETE FROM deliveries WHERE task_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (ids) AND finished BETWEEN since AND until;
    DELETE FROM webhooks WHERE task_id = ANY (ids);
    DELETE FROM mailed_tasks WHERE task_id = ANY (ids);
    DELETE FROM task_mails WHERE task_id = ANY (ids);
    DELETE FROM idempotency_keys WHERE task_id = ANY (ids);
    RETURN NULL;
END $$;
