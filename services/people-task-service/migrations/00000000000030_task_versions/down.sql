DROP TRIGGER count_content_version ON tasks;
DROP FUNCTION count_content_version();
ALTER TABLE tasks DROP COLUMN content_version;
