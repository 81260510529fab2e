DROP TABLE deletion_settings;
DROP INDEX deletions_failed;
ALTER TABLE deletions DROP COLUMN started;
DROP TRIGGER users_refuse_change_during_deletion ON users;
DROP FUNCTION refuse_change_during_deletion;
DROP TRIGGER deletions_note_in_progress ON deletions;
DROP FUNCTION note_deletion_in_progress;
ALTER TABLE users DROP COLUMN deletion_in_progress;
