ALTER TABLE tasks DROP COLUMN confirmation_required;
