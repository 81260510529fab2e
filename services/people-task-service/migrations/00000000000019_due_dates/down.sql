SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION delete_deliveries_of_webhooks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
    tasks bytea[] := ARRAY(SELECT DISTINCT task_id FROM deleted);
BEGIN
    -- A decision that has read these webhooks does not take effect any more, or has added its deliveries by then.
    UPDATE task_states SET version = version + 1 WHERE task_id = ANY (tasks);
    DELETE FROM deliveries WHERE task_id = ANY (tasks) AND webhook_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (tasks) AND webhook_id = ANY (ids);
    RETURN NULL;
END $$;

DROP TABLE due_dates;
