-- Rows with the new value stay.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'password-changed', 'password-change-refused',
        'password-reset-requested', 'password-reset', 'user-deletion-requested', 'user-deletion-cancelled',
        'user-deletion-failed', 'user-deleted'
    )) NOT VALID;
