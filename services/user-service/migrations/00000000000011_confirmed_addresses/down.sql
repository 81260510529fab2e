ALTER TABLE notifications DROP COLUMN generation;
ALTER TABLE deletions DROP COLUMN email_trusted;
DROP TABLE former_emails;
DROP TRIGGER users_refuse_change_during_deletion ON users;
CREATE TRIGGER users_refuse_change_during_deletion BEFORE UPDATE OF
    username, username_key, email, email_key, password_hash, is_active, plan, scope, vendor,
    allowed_private_components, metadata, email_verified, code_generation ON users
FOR EACH ROW WHEN (OLD.deletion_in_progress AND NEW.deletion_in_progress)
EXECUTE FUNCTION refuse_change_during_deletion();
ALTER TABLE users DROP COLUMN email_since;
ALTER TABLE users DROP COLUMN email_confirmed;
ALTER TABLE users DROP COLUMN reactivated;
