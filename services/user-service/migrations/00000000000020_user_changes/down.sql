ALTER TABLE deletion_settings DROP COLUMN confirmation_required;
DROP TRIGGER users_note_change ON users;
DROP FUNCTION note_user_change;
DROP TABLE user_changes;
ALTER TABLE users DROP COLUMN access_changed;
