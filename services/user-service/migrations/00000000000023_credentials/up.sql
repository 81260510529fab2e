-- Credentials that can be revoked alone. The first kind is the session of a browser that stays signed in.

CREATE TABLE credentials (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('session')),
    -- The hash of the random value by which the credential is found. The value never changes.
    fingerprint bytea NOT NULL UNIQUE CHECK (octet_length(fingerprint) = 32),
    -- The hash of the random value that each use replaces, and of the one before it.
    secret bytea CHECK (octet_length(secret) = 32),
    earlier_secret bytea CHECK (octet_length(earlier_secret) = 32),
    -- The hash of what the browser named its last use by. Only the browser that has not received the response repeats it.
    attempt bytea CHECK (octet_length(attempt) = 32),
    -- The incarnation of the database in which the credential was issued. A restore ends all that it brings back.
    incarnation text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    last_used timestamptz NOT NULL DEFAULT now(),
    expires timestamptz NOT NULL,
    -- Where it was used last, and by which program.
    client_network text NOT NULL,
    program text NOT NULL CHECK (char_length(program) <= 200),
    CHECK (kind <> 'session' OR secret IS NOT NULL)
);

CREATE INDEX credentials_by_user ON credentials (user_id, last_used);
CREATE INDEX credentials_by_expires ON credentials (expires);

-- Credentials that have ended, but whose tokens may not have expired. The revocation feed reads them like users.
CREATE TABLE ended_credentials (
    credential_id bytea PRIMARY KEY CHECK (octet_length(credential_id) = 12),
    ended timestamptz NOT NULL DEFAULT now(),
    end_transaction bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint
);

CREATE INDEX ended_credentials_by_ended ON ended_credentials (ended, credential_id);
CREATE INDEX ended_credentials_by_end_transaction ON ended_credentials (end_transaction, credential_id);

-- A credential ends when its row is deleted. No token outlives a credential that expires.
CREATE FUNCTION note_ended_credentials() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO ended_credentials (credential_id)
    SELECT id FROM gone WHERE expires > now() - interval '1 hour'
    ON CONFLICT (credential_id) DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER credentials_note_ended AFTER DELETE ON credentials REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION note_ended_credentials();

-- What revokes a user's tokens ends the user's sessions. A session is inserted while its user is locked, so none slips in
-- beside it.
CREATE FUNCTION end_sessions() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM credentials WHERE user_id = NEW.id AND kind = 'session';
    RETURN NULL;
END $$;

CREATE TRIGGER users_end_sessions AFTER UPDATE OF epoch ON users
FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch) EXECUTE FUNCTION end_sessions();

-- The log says which sessions began and ended. Existing rows have one of the values that were allowed before, so they need
-- not be checked.
ALTER TABLE audit_log
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'tokens-revoked', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'session-started', 'session-ended', 'session-replayed', 'password-changed',
        'password-change-refused', 'password-reset-requested', 'password-reset', 'user-deletion-requested',
        'user-deletion-cancelled', 'user-deletion-failed', 'user-deleted'
    )) NOT VALID;
