ALTER TABLE task_mails DROP COLUMN is_of_another;
