-- Replaces a column. Stop every process of an earlier version first: it reads and writes that column.

-- When the user's e-mail address was confirmed by a code that was sent to it; null if it never was. email_verified was
-- also true for addresses that did not have to be confirmed, so it cannot tell them apart once confirmation is required.
ALTER TABLE users ADD COLUMN email_confirmed timestamptz;

-- The audit log knows who returned a code, for the address or for a password, and who was made by the operator.
UPDATE users SET email_confirmed = log.confirmed
FROM (
    SELECT subject_id, max(at) AS confirmed FROM audit_log
    WHERE action IN ('email-verified', 'first-admin-made')
        OR (action = 'password-reset' AND proof = 'reset-code')
    GROUP BY subject_id
) AS log
WHERE users.id = log.subject_id AND users.email_verified AND NOT EXISTS (
    SELECT FROM audit_log AS later
    WHERE later.subject_id = users.id AND later.action = 'user-updated' AND later.at > log.confirmed
        AND later.detail -> 'fields' @> '["email"]'
);

DROP TRIGGER users_refuse_change_during_deletion ON users;
CREATE TRIGGER users_refuse_change_during_deletion BEFORE UPDATE OF
    username, username_key, email, email_key, password_hash, is_active, plan, scope, vendor,
    allowed_private_components, metadata, email_confirmed, code_generation ON users
FOR EACH ROW WHEN (OLD.deletion_in_progress AND NEW.deletion_in_progress)
EXECUTE FUNCTION refuse_change_during_deletion();

-- Since when the user has the e-mail address.
ALTER TABLE users ADD COLUMN email_since timestamptz;
UPDATE users SET email_since = coalesce((
    SELECT max(at) FROM audit_log
    WHERE subject_id = users.id AND action = 'user-updated' AND detail -> 'fields' @> '["email"]'
), created);
ALTER TABLE users ALTER COLUMN email_since SET DEFAULT now(), ALTER COLUMN email_since SET NOT NULL;

-- Addresses that gave a user access to tasks until the user got another one. The tasks that were requested under them
-- meanwhile are erased with the account. A user can have the same address several times.
CREATE TABLE former_emails (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE,
    email_key text NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, id)
);

-- When the user was last reactivated. Deletions that failed before are not started again.
ALTER TABLE users ADD COLUMN reactivated timestamptz;
UPDATE users SET reactivated = (
    SELECT max(at) FROM audit_log
    WHERE subject_id = users.id AND action = 'user-updated' AND detail -> 'fields' @> '["isActive"]'
)
WHERE id IN (SELECT user_id FROM deletions WHERE status = 'failed');

-- Whether the user's address gave access to tasks when the deletion was requested.
ALTER TABLE deletions ADD COLUMN email_trusted boolean NOT NULL DEFAULT false;
UPDATE deletions SET email_trusted = true
FROM users WHERE users.id = deletions.user_id AND users.email_verified;

ALTER TABLE users DROP COLUMN email_verified;

-- Existing rows have one of the values that were allowed before, so they need not be checked.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'password-changed', 'password-change-refused',
        'password-reset-requested', 'password-reset', 'user-deletion-requested', 'user-deletion-cancelled',
        'user-deletion-failed', 'user-deleted'
    )) NOT VALID;

-- The code_generation that the request raised. A code is valid only while it is the user's, so a notification that is
-- sent later makes no valid code. Null if the code does not depend on it.
ALTER TABLE notifications ADD COLUMN generation bigint;
