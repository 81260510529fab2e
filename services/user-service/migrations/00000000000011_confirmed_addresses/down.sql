ALTER TABLE notifications DROP COLUMN generation;
ALTER TABLE deletions DROP COLUMN email_trusted;
-- Rows with the new value stay.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'email-verified', 'signed-in',
        'sign-in-refused', 'password-changed', 'password-change-refused', 'password-reset-requested',
        'password-reset', 'user-deletion-requested', 'user-deletion-cancelled', 'user-deletion-failed',
        'user-deleted'
    )) NOT VALID;
DROP TABLE former_emails;
DROP TRIGGER users_refuse_change_during_deletion ON users;
-- Where addresses need not be confirmed, set it to true for all users.
ALTER TABLE users ADD COLUMN email_verified boolean NOT NULL DEFAULT false;
ALTER TABLE users ALTER COLUMN email_verified DROP DEFAULT;
UPDATE users SET email_verified = email_confirmed IS NOT NULL;
CREATE TRIGGER users_refuse_change_during_deletion BEFORE UPDATE OF
    username, username_key, email, email_key, password_hash, is_active, plan, scope, vendor,
    allowed_private_components, metadata, email_verified, code_generation ON users
FOR EACH ROW WHEN (OLD.deletion_in_progress AND NEW.deletion_in_progress)
EXECUTE FUNCTION refuse_change_during_deletion();
ALTER TABLE users DROP COLUMN reactivated;
ALTER TABLE users DROP COLUMN email_since;
ALTER TABLE users DROP COLUMN email_confirmed;
