ALTER TABLE mailed_tasks DROP COLUMN account_group;
