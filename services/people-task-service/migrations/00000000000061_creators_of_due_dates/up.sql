-- The function below runs with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Who registered the webhook, or the group of accounts that counts as one with it: they take turns. For webhooks of earlier
-- versions the creator of the task. Empty if there is no such webhook.
ALTER TABLE due_dates ADD COLUMN creator bytea NOT NULL DEFAULT '';

-- Whose share a lane uses: the user or group after the origin of its URL.
CREATE FUNCTION creator_of_lane(lane text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT decode(substring(lane FROM ' ([0-9a-f]{24})'), 'hex')
$$;

-- Due dates that processes of an earlier version insert. Their webhooks may be inserted by the same statement.
CREATE FUNCTION set_creator_of_due_date() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE due_dates SET creator = coalesce(creator_of_lane(webhooks.lane), tasks.creator)
    FROM webhooks JOIN tasks ON tasks.id = webhooks.task_id
    WHERE due_dates.webhook_id = NEW.webhook_id AND webhooks.id = NEW.webhook_id;
    RETURN NULL;
END $$;
CREATE TRIGGER set_creator_of_due_date AFTER INSERT ON due_dates
    FOR EACH ROW WHEN (NEW.creator = '') EXECUTE FUNCTION set_creator_of_due_date();
