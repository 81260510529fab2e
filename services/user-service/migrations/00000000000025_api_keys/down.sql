-- Rows of the audit log with the new values stay.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'tokens-revoked', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'session-started', 'session-ended', 'session-replayed', 'password-changed',
        'password-change-refused', 'password-reset-requested', 'password-reset', 'user-deletion-requested',
        'user-deletion-cancelled', 'user-deletion-failed', 'user-deleted'
    )) NOT VALID;
DELETE FROM notifications WHERE kind IN ('key-created', 'key-expires');
ALTER TABLE notifications
    DROP COLUMN key_name,
    DROP COLUMN key_expires,
    DROP CONSTRAINT notifications_kind_check,
    ADD CONSTRAINT notifications_kind_check CHECK (kind IN ('forgot-password', 'verify-email')) NOT VALID;
DROP TRIGGER users_end_keys ON users;
DROP FUNCTION end_keys;
DELETE FROM credentials WHERE kind = 'key';
ALTER TABLE users DROP COLUMN is_service;
ALTER TABLE credentials
    DROP CONSTRAINT credentials_of_keys,
    DROP COLUMN name,
    DROP COLUMN scopes,
    DROP COLUMN created_by,
    DROP COLUMN used,
    DROP COLUMN notice_due,
    DROP CONSTRAINT credentials_kind_check,
    ADD CONSTRAINT credentials_kind_check CHECK (kind IN ('session')) NOT VALID;
