-- Shows how far the deletion of many tasks has come.
ALTER TABLE deletions ADD COLUMN deleted_tasks bigint NOT NULL DEFAULT 0 CHECK (deleted_tasks >= 0);
