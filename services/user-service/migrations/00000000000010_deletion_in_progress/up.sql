-- A user does not change while a deletion of the user is in progress. The database decides it, so that no request can
-- slip in between a check and its change.

ALTER TABLE users ADD COLUMN deletion_in_progress boolean NOT NULL DEFAULT false;

UPDATE users SET deletion_in_progress = true
WHERE id IN (SELECT user_id FROM deletions WHERE status = 'in-progress');

-- A transaction that ends a deletion locks the user first.
CREATE FUNCTION note_deletion_in_progress() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE users SET deletion_in_progress = NEW.status = 'in-progress' WHERE id = NEW.user_id;
    RETURN NULL;
END $$;

CREATE TRIGGER deletions_note_in_progress AFTER INSERT OR UPDATE OF status ON deletions
FOR EACH ROW EXECUTE FUNCTION note_deletion_in_progress();

CREATE FUNCTION refuse_change_during_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE check_violation USING
        CONSTRAINT = 'users_deletion_in_progress', MESSAGE = 'a deletion of the user is in progress';
END $$;

-- What an update of the user, a new password or a code changes. The revocation of tokens is not refused.
CREATE TRIGGER users_refuse_change_during_deletion BEFORE UPDATE OF
    username, username_key, email, email_key, password_hash, is_active, plan, scope, vendor,
    allowed_private_components, metadata, email_verified, code_generation ON users
FOR EACH ROW WHEN (OLD.deletion_in_progress AND NEW.deletion_in_progress)
EXECUTE FUNCTION refuse_change_during_deletion();

-- The age of a deletion counts from here. A deletion that failed can be started again.
ALTER TABLE deletions ADD COLUMN started timestamptz;
UPDATE deletions SET started = created;
ALTER TABLE deletions ALTER COLUMN started SET DEFAULT now(), ALTER COLUMN started SET NOT NULL;

-- Failed deletions, which an administrator starts again.
CREATE INDEX deletions_failed ON deletions (user_id) WHERE status = 'failed';

-- What the user-service was started with, so that the deletion-worker notices that its settings differ.
CREATE TABLE deletion_settings (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    -- Whether new deletions have steps at a flow engine.
    with_engine boolean NOT NULL,
    recorded timestamptz NOT NULL DEFAULT now()
);
