-- When the task got its present requester by an edit. Null if it has that of its creation, or was edited before this column.
ALTER TABLE tasks ADD COLUMN requester_since timestamptz;

-- Set here, and not by the statements that edit tasks, so that edits of earlier versions count, too.
CREATE OR REPLACE FUNCTION count_content_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.content_version = OLD.content_version + 1;
    IF NEW.requester_key <> OLD.requester_key THEN
        NEW.requester_since = now();
    END IF;
    RETURN NEW;
END $$;
