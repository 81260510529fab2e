ALTER TABLE task_states DROP COLUMN comment, DROP COLUMN decided_by;
