-- The version that callers see, which counts the changes of what a person decides on. `task_states.version` counts more,
-- such as new webhooks, and is internal. Statements of earlier versions read both tables and name only that one.
ALTER TABLE tasks ADD COLUMN content_version bigint NOT NULL DEFAULT 1;

-- Not part of the statements that edit tasks, so that edits of earlier versions count, too.
CREATE FUNCTION count_content_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.content_version = OLD.content_version + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER count_content_version BEFORE UPDATE ON tasks FOR EACH ROW
    WHEN ((OLD.title, OLD.description, OLD.decision_by, OLD.approver_key, OLD.requester_key)
        IS DISTINCT FROM (NEW.title, NEW.description, NEW.decision_by, NEW.approver_key, NEW.requester_key))
    EXECUTE FUNCTION count_content_version();
