ALTER TABLE erased_users DROP COLUMN changed;
