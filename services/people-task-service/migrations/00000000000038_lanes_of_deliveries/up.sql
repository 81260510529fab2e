-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

ALTER TABLE deliveries
    -- As in `webhooks`.
    ADD COLUMN lane text NOT NULL DEFAULT '';

-- Deliveries to webhooks of earlier versions, and those that processes of an earlier version insert: their lane is the
-- host and the creator of the task.
CREATE FUNCTION set_lane_of_delivery() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.lane = coalesce(
        (SELECT lane FROM webhooks WHERE id = NEW.webhook_id),
        NEW.host || ' ' || (SELECT encode(creator, 'hex') FROM tasks WHERE id = NEW.task_id),
        NEW.host || ' -');
    RETURN NEW;
END $$;
CREATE TRIGGER set_lane_of_delivery BEFORE INSERT ON deliveries
    FOR EACH ROW WHEN (NEW.lane = '') EXECUTE FUNCTION set_lane_of_delivery();
