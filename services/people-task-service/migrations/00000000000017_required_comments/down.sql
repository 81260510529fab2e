ALTER TABLE tasks DROP COLUMN comment_required;
