-- Changes that the people-task service has to be told: of a user's activity, scope `admin`, or e-mail address and its
-- confirmation.

-- The time of the latest of these changes. It grows with every one, also if the clock does not. Null before the first.
ALTER TABLE users ADD COLUMN access_changed timestamptz;

-- One row for each user of whom a change was not told. The deletion-worker tells the user's present state and deletes the
-- row.
CREATE TABLE user_changes (
    user_id bytea PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    changed timestamptz NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    -- Not told before this time: the end of a worker's claim, or of the pause after a failure.
    next_attempt timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX user_changes_by_next_attempt ON user_changes (next_attempt);
CREATE INDEX user_changes_by_changed ON user_changes (changed);

-- The user's row is locked, so the changes of one user are in the order of their times.
CREATE FUNCTION note_user_change() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.access_changed = greatest(clock_timestamp(), OLD.access_changed + interval '1 microsecond');
    INSERT INTO user_changes (user_id, changed) VALUES (NEW.id, NEW.access_changed)
    ON CONFLICT (user_id) DO UPDATE SET changed = excluded.changed, attempts = 0, next_attempt = now();
    RETURN NEW;
END $$;

CREATE TRIGGER users_note_change BEFORE UPDATE OF is_active, scope, email, email_confirmed ON users
FOR EACH ROW WHEN (
    NEW.is_active <> OLD.is_active
    OR ('admin' = ANY (NEW.scope)) <> ('admin' = ANY (OLD.scope))
    OR NEW.email <> OLD.email
    OR (NEW.email_confirmed IS NULL) <> (OLD.email_confirmed IS NULL)
) EXECUTE FUNCTION note_user_change();

-- Whether only confirmed addresses give access to tasks. Null before a user-service of this version was started.
ALTER TABLE deletion_settings ADD COLUMN confirmation_required boolean;
