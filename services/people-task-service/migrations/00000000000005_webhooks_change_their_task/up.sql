-- A decision reads the task and its webhooks without locking them, and takes effect only if the task's row has not
-- changed since. So a new webhook creates a new version of that row.
CREATE FUNCTION touch_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE people_task.tasks SET status = status WHERE id = NEW.task_id;
    RETURN NULL;
END $$;

CREATE TRIGGER touch_task AFTER INSERT ON webhooks FOR EACH ROW EXECUTE FUNCTION touch_task();
