ALTER TABLE deletions DROP COLUMN deleted_tasks;
