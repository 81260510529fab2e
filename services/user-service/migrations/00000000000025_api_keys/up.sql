-- API keys are the second kind of a credential, and service accounts are users who have nothing else. A key without an end has
-- the end `infinity`. Existing rows have one of the values that were allowed before, so they need not be checked.
ALTER TABLE credentials
    -- What its user calls it, and what it may do.
    ADD COLUMN name text,
    ADD COLUMN scopes text[],
    -- The administrator who made it for the user.
    ADD COLUMN created_by bytea,
    -- The minute in which it was used last.
    ADD COLUMN used timestamptz,
    -- When a mail is to say that it expires.
    ADD COLUMN notice_due timestamptz,
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT credentials_kind_check,
    ADD CONSTRAINT credentials_kind_check CHECK (kind IN ('session', 'key')) NOT VALID,
    ADD CONSTRAINT credentials_of_keys CHECK (
        kind <> 'key' OR (name IS NOT NULL AND char_length(name) <= 100 AND scopes IS NOT NULL)
    ) NOT VALID;

ALTER TABLE users ADD COLUMN is_service boolean NOT NULL DEFAULT false;

-- Deactivating a user ends the user's keys. What else ends them says so itself, because a changed password does not.
CREATE FUNCTION end_keys() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM credentials WHERE user_id = NEW.id AND kind = 'key';
    RETURN NULL;
END $$;

CREATE TRIGGER users_end_keys AFTER UPDATE OF is_active ON users
FOR EACH ROW WHEN (OLD.is_active AND NOT NEW.is_active) EXECUTE FUNCTION end_keys();

-- Mails about a key, which have no code.
ALTER TABLE notifications
    ADD COLUMN key_name text,
    ADD COLUMN key_expires timestamptz,
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT notifications_kind_check,
    ADD CONSTRAINT notifications_kind_check CHECK (
        kind IN ('forgot-password', 'verify-email', 'key-created', 'key-expires')
    ) NOT VALID;

ALTER TABLE audit_log
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'tokens-revoked', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'session-started', 'session-ended', 'session-replayed', 'key-created', 'key-ended',
        'key-confirmed', 'password-changed', 'password-change-refused', 'password-reset-requested', 'password-reset',
        'user-deletion-requested', 'user-deletion-cancelled', 'user-deletion-failed', 'user-deleted'
    )) NOT VALID;
