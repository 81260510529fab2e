-- Accounts, their sign-in names, notifications to users, and deletions.
-- Identifiers are twelve bytes that begin with the creation time, so they sort by age.

CREATE TABLE users (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    username text NOT NULL,
    email text NOT NULL,
    -- Lower-case forms, for comparison, sorting and search.
    username_key text NOT NULL CHECK (username_key = lower(username)),
    email_key text NOT NULL CHECK (email_key = lower(email)),
    password_hash text NOT NULL,
    is_active boolean NOT NULL DEFAULT true,
    plan text NOT NULL,
    scope text[] NOT NULL,
    -- Null, a string or an array of strings, stored as it was given.
    vendor jsonb CHECK (jsonb_typeof(vendor) IN ('string', 'array')),
    allowed_private_components text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    email_verified boolean NOT NULL,
    -- Tokens of a lower epoch are revoked.
    epoch bigint NOT NULL DEFAULT 0,
    epoch_raised timestamptz,
    epoch_transaction bigint,
    -- Codes of a lower generation are invalid.
    code_generation bigint NOT NULL DEFAULT 0,
    created timestamptz NOT NULL DEFAULT now(),
    mtime timestamptz NOT NULL DEFAULT now(),
    last_sign_in timestamptz
);

-- One index for each sort of the API; ties are broken by id, and nulls come last in both directions.
CREATE INDEX users_by_created ON users (created, id);
CREATE INDEX users_by_mtime ON users (mtime, id);
CREATE INDEX users_by_username ON users (username_key, id);
CREATE INDEX users_by_email ON users (email_key, id);
CREATE INDEX users_by_plan ON users (lower(plan), id);
CREATE INDEX users_by_is_active ON users (is_active, id);
CREATE INDEX users_by_last_sign_in ON users (last_sign_in, id);
CREATE INDEX users_by_last_sign_in_descending ON users (last_sign_in DESC NULLS LAST, id DESC);
-- Membership filters and the pattern.
CREATE INDEX users_scope ON users USING gin (scope);
CREATE INDEX users_vendor ON users USING gin (vendor jsonb_path_ops);
CREATE INDEX users_username_pattern ON users USING gin (username_key public.gin_trgm_ops);
-- The revocation feed.
CREATE INDEX users_by_epoch_transaction ON users (epoch_transaction) WHERE epoch_transaction IS NOT NULL;

-- All usernames and e-mail addresses. One table for both, so that no username can equal another user's
-- e-mail address.
CREATE TABLE sign_in_names (
    name text PRIMARY KEY,
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE
);

CREATE INDEX sign_in_names_by_user ON sign_in_names (user_id);

CREATE FUNCTION claim_sign_in_name(wanted text, claimant bytea, violated text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    holder bytea;
BEGIN
    -- A concurrent claim of the same name waits here for the other one's commit.
    INSERT INTO sign_in_names AS n (name, user_id) VALUES (wanted, claimant)
    ON CONFLICT (name) DO UPDATE SET user_id = n.user_id
    RETURNING n.user_id INTO holder;
    IF holder <> claimant THEN
        RAISE unique_violation USING CONSTRAINT = violated, MESSAGE = 'the name is taken';
    END IF;
END $$;

CREATE FUNCTION claim_sign_in_names() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    DELETE FROM sign_in_names
    WHERE user_id = NEW.id AND name NOT IN (NEW.username_key, NEW.email_key);
    PERFORM claim_sign_in_name(NEW.username_key, NEW.id, 'users_username_taken');
    PERFORM claim_sign_in_name(NEW.email_key, NEW.id, 'users_email_taken');
    RETURN NULL;
END $$;

CREATE TRIGGER users_claim_names AFTER INSERT OR UPDATE OF username_key, email_key ON users
FOR EACH ROW EXECUTE FUNCTION claim_sign_in_names();

-- Adds every raised epoch to the feed. The feed is ordered by transaction number and not by a sequence, because
-- transactions do not commit in the order of a sequence.
CREATE FUNCTION note_raised_epoch() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF NEW.epoch < OLD.epoch THEN
        RAISE check_violation USING CONSTRAINT = 'users_epoch_never_falls';
    END IF;
    NEW.epoch_raised = now();
    NEW.epoch_transaction = pg_current_xact_id()::text::bigint;
    RETURN NEW;
END $$;

CREATE TRIGGER users_note_raised_epoch BEFORE UPDATE ON users
FOR EACH ROW WHEN (NEW.epoch <> OLD.epoch) EXECUTE FUNCTION note_raised_epoch();

-- Codes that were sent, for a forgotten password or to confirm an e-mail address.
CREATE TABLE codes (
    fingerprint bytea PRIMARY KEY CHECK (octet_length(fingerprint) = 32),
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE,
    purpose text NOT NULL CHECK (purpose IN ('forgot-password', 'verify-email')),
    -- The user's code_generation (forgot-password) or the e-mail key that it confirms (verify-email).
    generation bigint NOT NULL,
    email_key text,
    created timestamptz NOT NULL DEFAULT now(),
    expires timestamptz NOT NULL
);

CREATE INDEX codes_by_user ON codes (user_id);
CREATE INDEX codes_by_expires ON codes (expires);

-- Notifications to users, one row for each channel. The row is the outbox: workers claim it, send it and close
-- it; messages only carry its identifier. A request for an unknown address inserts the same rows without a user,
-- and nothing is sent for them.
CREATE TABLE notifications (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    user_id bytea REFERENCES users ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('forgot-password', 'verify-email')),
    channel text NOT NULL CHECK (channel IN ('webhook', 'mail', 'log')),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'fail')),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    request_id text NOT NULL,
    traceparent text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    -- Not attempted before this time.
    next_attempt timestamptz NOT NULL DEFAULT now(),
    -- Not published again by a sweep before this time.
    wake_at timestamptz NOT NULL,
    -- Claimed until this time.
    lease_until timestamptz,
    finished timestamptz,
    CHECK ((status = 'pending') = (finished IS NULL))
);

CREATE INDEX notifications_by_wake_at ON notifications (wake_at) WHERE status = 'pending';
CREATE INDEX notifications_by_user ON notifications (user_id);
CREATE INDEX notifications_by_finished ON notifications (finished) WHERE finished IS NOT NULL;

-- Jobs that delete a user. The row outlives the user, because the ticket shows it.
CREATE TABLE deletions (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    ticket text NOT NULL UNIQUE,
    user_id bytea NOT NULL CHECK (octet_length(user_id) = 12),
    status text NOT NULL DEFAULT 'in-progress'
        CHECK (status IN ('in-progress', 'completed', 'failed', 'cancelled')),
    steps_total integer NOT NULL CHECK (steps_total > 0),
    steps_done integer NOT NULL DEFAULT 0 CHECK (steps_done BETWEEN 0 AND steps_total),
    -- The problem that ended it, if it failed.
    failure jsonb,
    request_id text NOT NULL,
    traceparent text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    next_attempt timestamptz NOT NULL DEFAULT now(),
    wake_at timestamptz NOT NULL,
    lease_until timestamptz,
    -- Changes with every claim: a worker with an older number has lost the job.
    lease bigint NOT NULL DEFAULT 0,
    finished timestamptz,
    -- Set when the user's row is deleted: from then on the feed revokes all of the user's tokens.
    epoch_transaction bigint,
    CHECK ((status = 'in-progress') = (finished IS NULL)),
    CHECK (status <> 'completed' OR steps_done = steps_total),
    CHECK ((status = 'failed') = (failure IS NOT NULL))
);

CREATE UNIQUE INDEX deletions_one_in_progress ON deletions (user_id) WHERE status = 'in-progress';
CREATE INDEX deletions_by_wake_at ON deletions (wake_at) WHERE status = 'in-progress';
CREATE INDEX deletions_by_user ON deletions (user_id);
CREATE INDEX deletions_by_created ON deletions (created, id);
CREATE INDEX deletions_by_finished ON deletions (finished) WHERE finished IS NOT NULL;
CREATE INDEX deletions_by_epoch_transaction ON deletions (epoch_transaction) WHERE epoch_transaction IS NOT NULL;

CREATE TABLE deletion_steps (
    deletion_id bytea NOT NULL REFERENCES deletions ON DELETE CASCADE,
    position integer NOT NULL CHECK (position > 0),
    name text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    finished timestamptz,
    PRIMARY KEY (deletion_id, position)
);

-- Consecutive failed sign-ins, by account and client address and by account alone (address ''). The account is
-- a hash of the name that was tried, so unknown names look like known ones.
CREATE TABLE sign_in_failures (
    account bytea NOT NULL CHECK (octet_length(account) = 32),
    client_address text NOT NULL,
    failures integer NOT NULL,
    blocked_until timestamptz,
    last_failure timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, client_address)
);

CREATE INDEX sign_in_failures_by_last_failure ON sign_in_failures (last_failure);
