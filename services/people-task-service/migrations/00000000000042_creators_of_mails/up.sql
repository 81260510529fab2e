-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- The creator of the mail's task: creators take turns. Empty if there is no such task.
ALTER TABLE task_mails ADD COLUMN creator bytea NOT NULL DEFAULT '';

-- Mails that processes of an earlier version insert.
CREATE FUNCTION set_creator_of_mail() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.creator = coalesce((SELECT creator FROM tasks WHERE id = NEW.task_id), '');
    RETURN NEW;
END $$;
CREATE TRIGGER set_creator_of_mail BEFORE INSERT ON task_mails
    FOR EACH ROW WHEN (NEW.creator = '') EXECUTE FUNCTION set_creator_of_mail();
