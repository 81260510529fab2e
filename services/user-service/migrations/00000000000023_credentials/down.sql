-- Rows of the audit log with the new values stay.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'tokens-revoked', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'password-changed', 'password-change-refused',
        'password-reset-requested', 'password-reset', 'user-deletion-requested', 'user-deletion-cancelled',
        'user-deletion-failed', 'user-deleted'
    )) NOT VALID;
DROP TRIGGER users_end_sessions ON users;
DROP FUNCTION end_sessions;
DROP TABLE credentials;
DROP FUNCTION note_ended_credentials;
DROP TABLE ended_credentials;
