-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION delete_rows_of_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
BEGIN
    -- First, because a decision or a registration that is under way adds rows until it ends.
    DELETE FROM task_states WHERE task_id = ANY (ids);
    DELETE FROM deliveries WHERE task_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (ids);
    DELETE FROM webhooks WHERE task_id = ANY (ids);
    RETURN NULL;
END $$;
