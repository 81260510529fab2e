-- What is subtracted from the bytes of several users locks their rows in the order of the keys, as what is added does.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION subtract_bytes_of_answers() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM stored_bytes WHERE user_id IN (SELECT deleted.user_id FROM deleted) ORDER BY user_id FOR UPDATE;
    UPDATE stored_bytes SET bytes = stored_bytes.bytes - freed.bytes
    FROM (SELECT user_id, sum(octet_length(answer))::bigint AS bytes FROM deleted GROUP BY user_id) AS freed
    WHERE stored_bytes.user_id = freed.user_id;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION delete_rows_of_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
    -- A delivery is finished after its task was created. The clock may have been set back since then.
    since timestamptz := (SELECT min(created) FROM deleted) - interval '1 day';
    until timestamptz := clock_timestamp() + interval '1 day';
BEGIN
    -- Before the bytes that they free, as where they are deleted themselves.
    PERFORM FROM idempotency_keys WHERE task_id = ANY (ids) ORDER BY key FOR UPDATE;
    -- Those whose bytes are freed below and by the deletion of the tasks.
    PERFORM FROM stored_bytes WHERE user_id IN (
        SELECT creator FROM deleted UNION
        SELECT registered_by FROM webhooks WHERE task_id = ANY (ids) AND options IS NOT NULL UNION
        SELECT user_id FROM idempotency_keys WHERE task_id = ANY (ids)
    ) ORDER BY user_id FOR UPDATE;
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
