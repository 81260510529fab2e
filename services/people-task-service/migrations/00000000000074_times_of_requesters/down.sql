CREATE OR REPLACE FUNCTION count_content_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.content_version = OLD.content_version + 1;
    RETURN NEW;
END $$;
ALTER TABLE tasks DROP COLUMN requester_since;
