-- The schema of 0.2.0: accounts, their sign-in names, notifications to users, and deletions. A database of 0.2.0 has
-- this migration. One of an earlier version must be upgraded by 0.2.0 first.
--
-- Identifiers are twelve bytes that begin with the creation time, so they sort by age.

----------------------------------------------------------------------------------------------------------------------
-- Users

-- The segment of a user: lists filter and count by it. Users with the same values of these columns have the same one.
-- It is the first 64 bits of a hash, so that a restored dump has the same segments. jsonb has one text for equal values.
CREATE FUNCTION user_segment(is_active boolean, plan text, scope text[], vendor jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || left(encode(sha256(convert_to(
        jsonb_build_array(is_active, plan, scope, vendor)::text, 'UTF8')), 'hex'), 16))::bit(64)::bigint
$$;

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
    -- Tokens of a lower epoch are revoked.
    epoch bigint NOT NULL DEFAULT 0,
    epoch_raised timestamptz,
    epoch_transaction bigint,
    -- Codes of a lower generation are invalid.
    code_generation bigint NOT NULL DEFAULT 0,
    created timestamptz NOT NULL DEFAULT now(),
    mtime timestamptz NOT NULL DEFAULT now(),
    deletion_in_progress boolean NOT NULL DEFAULT false,
    -- When the e-mail address was confirmed by a code that was sent to it; null if it never was.
    email_confirmed timestamptz,
    -- Since when the user has the e-mail address.
    email_since timestamptz NOT NULL DEFAULT now(),
    -- When the user was last reactivated. Deletions that failed before are not started again.
    reactivated timestamptz,
    segment bigint NOT NULL GENERATED ALWAYS AS (user_segment(is_active, plan, scope, vendor)) STORED
-- An index is read alone only where the table was vacuumed.
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- One index for each sort of the API; ties are broken by id. Each has the segment of a user, so that a list reads only
-- an index up to the end of the page, whatever its filters are.
CREATE INDEX users_by_created ON users (created, id) INCLUDE (segment);
CREATE INDEX users_by_mtime ON users (mtime, id) INCLUDE (segment);
CREATE INDEX users_by_username ON users (username_key, id) INCLUDE (segment);
CREATE INDEX users_by_email ON users (email_key, id) INCLUDE (segment);
-- Postgres reads an index on an expression alone only if the index has the expression's columns, too.
CREATE INDEX users_by_plan ON users (lower(plan), id) INCLUDE (segment, plan);
CREATE INDEX users_by_is_active ON users (is_active, id) INCLUDE (segment);
CREATE INDEX users_by_segment ON users (segment);
-- Administrators.
CREATE INDEX users_scope ON users USING gin (scope);
CREATE INDEX users_username_pattern ON users USING gin (username_key public.gin_trgm_ops);
-- The revocation feed: everything in the order of the first, changes in that of the second.
CREATE INDEX users_by_epoch_raised ON users (epoch_raised, id) WHERE epoch_raised IS NOT NULL;
CREATE INDEX users_by_epoch_transaction ON users (epoch_transaction, id) WHERE epoch_transaction IS NOT NULL;
-- The highest bcrypt cost of all hashes (`$2b$12$…`). Every check of a password takes as long as one of this cost.
CREATE INDEX users_by_password_cost ON users (substring(password_hash FROM 5 FOR 2));

-- All usernames and e-mail addresses. One table for both, so that no username can equal another user's
-- e-mail address.
CREATE TABLE sign_in_names (
    name text PRIMARY KEY,
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE
);

CREATE INDEX sign_in_names_by_user ON sign_in_names (user_id);

-- Every transaction locks the names that it claims or gives up in the same order, so that two transactions that claim
-- each other's names cause no deadlock.
CREATE FUNCTION claim_sign_in_names() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    affected text;
    holder bytea;
    taken text[] := '{}';
    violated text;
BEGIN
    FOR affected IN
        SELECT DISTINCT name COLLATE "C" AS name FROM (
            SELECT n.name FROM sign_in_names AS n WHERE n.user_id = NEW.id
            UNION ALL VALUES (NEW.username_key), (NEW.email_key)
        ) AS names
        ORDER BY name
    LOOP
        IF affected NOT IN (NEW.username_key, NEW.email_key) THEN
            DELETE FROM sign_in_names WHERE name = affected AND user_id = NEW.id;
        ELSE
            -- A concurrent claim of the same name waits here for the other one's commit.
            INSERT INTO sign_in_names AS n (name, user_id) VALUES (affected, NEW.id)
            ON CONFLICT (name) DO UPDATE SET user_id = n.user_id
            RETURNING n.user_id INTO holder;
            IF holder <> NEW.id THEN
                taken := taken || affected;
            END IF;
        END IF;
    END LOOP;
    IF taken <> '{}' THEN
        violated := CASE WHEN NEW.username_key = ANY (taken)
            THEN 'users_username_taken' ELSE 'users_email_taken' END;
        RAISE unique_violation USING CONSTRAINT = violated, MESSAGE = 'the name is taken';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER users_claim_names AFTER INSERT OR UPDATE OF username_key, email_key ON users
FOR EACH ROW EXECUTE FUNCTION claim_sign_in_names();

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

-- The segments that have users.
CREATE TABLE user_segments (
    id bigint PRIMARY KEY,
    is_active boolean NOT NULL,
    plan text NOT NULL,
    scope text[] NOT NULL,
    vendor jsonb,
    -- How many users the segment has.
    users bigint NOT NULL,
    CHECK (id = user_segment(is_active, plan, scope, vendor))
);

-- Counts users that are added, removed or moved. The rows of segments are locked in order, and after the names of the
-- users, so that two transactions cannot deadlock. A segment without users is deleted; a concurrent transaction that
-- waits for it inserts it again.
CREATE FUNCTION count_in_segments() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO user_segments AS s (id, is_active, plan, scope, vendor, users)
        SELECT segment, is_active, plan, scope, vendor, count(*) FROM added
        GROUP BY segment, is_active, plan, scope, vendor ORDER BY segment
        ON CONFLICT (id) DO UPDATE SET users = s.users + excluded.users;
        RETURN NULL;
    ELSIF TG_OP = 'UPDATE' THEN
        INSERT INTO user_segments AS s (id, is_active, plan, scope, vendor, users)
        SELECT segment, is_active, plan, scope, vendor, sum(change) FROM (
            SELECT segment, is_active, plan, scope, vendor, 1 AS change FROM added
            UNION ALL SELECT segment, is_active, plan, scope, vendor, -1 FROM removed
        ) AS changes
        GROUP BY segment, is_active, plan, scope, vendor HAVING sum(change) <> 0 ORDER BY segment
        ON CONFLICT (id) DO UPDATE SET users = s.users + excluded.users;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    ELSE
        INSERT INTO user_segments AS s (id, is_active, plan, scope, vendor, users)
        SELECT segment, is_active, plan, scope, vendor, -count(*) FROM removed
        GROUP BY segment, is_active, plan, scope, vendor ORDER BY segment
        ON CONFLICT (id) DO UPDATE SET users = s.users + excluded.users;
    END IF;
    DELETE FROM user_segments WHERE users = 0 AND id IN (SELECT segment FROM removed);
    RETURN NULL;
END $$;

CREATE TRIGGER users_count_added AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_in_segments();
CREATE TRIGGER users_count_moved AFTER UPDATE ON users REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_in_segments();
CREATE TRIGGER users_count_removed AFTER DELETE ON users REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION count_in_segments();

----------------------------------------------------------------------------------------------------------------------
-- Revocation of tokens

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

-- Deleted users whose tokens may not have expired. The feed reads them like users.
CREATE TABLE deleted_users (
    user_id bytea PRIMARY KEY CHECK (octet_length(user_id) = 12),
    deleted timestamptz NOT NULL DEFAULT now(),
    epoch_transaction bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint
);

CREATE INDEX deleted_users_by_deleted ON deleted_users (deleted, user_id);
CREATE INDEX deleted_users_by_epoch_transaction ON deleted_users (epoch_transaction, user_id);

CREATE FUNCTION note_deleted_users() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO users.deleted_users (user_id) SELECT id FROM gone
    ON CONFLICT (user_id) DO UPDATE
    SET deleted = excluded.deleted, epoch_transaction = excluded.epoch_transaction;
    RETURN NULL;
END $$;

CREATE TRIGGER users_note_deleted AFTER DELETE ON users REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_users();

-- One row. A new value revokes all tokens. It is random, so that a restore cannot bring an old one back.
CREATE TABLE token_generation (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    generation text NOT NULL DEFAULT gen_random_uuid()::text
);

INSERT INTO token_generation DEFAULT VALUES;

-- Tokens of another incarnation of the database are revoked. It differs after every restore of a backup, but not after
-- a restart, VACUUM FULL or REINDEX:
-- - the cluster's identifier, if it is restored into another cluster,
-- - the timeline, after recovery to a point in time and after the promotion of a standby,
-- - the identifier of the database, if it is restored into another one,
-- - the identifier of the table, if pg_restore creates it,
-- - and the generation, if an operator changes it, because some restores change nothing else.
CREATE FUNCTION database_incarnation() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    cluster text;
    timeline text;
BEGIN
    BEGIN
        SELECT system_identifier INTO cluster FROM pg_catalog.pg_control_system();
        timeline = left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8);
    EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
        -- Some managed servers refuse these functions.
        cluster = NULL;
    END;
    RETURN left(encode(sha256(convert_to(jsonb_build_array(
        cluster,
        timeline,
        (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
        to_regclass('users.users')::oid,
        (SELECT generation FROM users.token_generation)
    )::text, 'UTF8')), 'hex'), 16);
END $$;

-- The lifetimes of tokens, and when each was last in use. A replica records its own before it signs, and then
-- every few minutes.
CREATE TABLE token_lifetimes (
    seconds bigint PRIMARY KEY CHECK (seconds > 0),
    last_used timestamptz NOT NULL DEFAULT now()
);

----------------------------------------------------------------------------------------------------------------------
-- Sign-in

-- When each user signed in last; null before the first time. A sign-in writes this narrow row and not a new version of
-- the row in users, which has many indexes. Every user has a row.
CREATE TABLE last_sign_ins (
    user_id bytea PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    at timestamptz,
    -- That of the user, for lists that are sorted by this time.
    segment bigint NOT NULL
-- As in users.
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- Nulls come last in both directions.
CREATE INDEX last_sign_ins_by_at ON last_sign_ins (at, user_id) INCLUDE (segment);
CREATE INDEX last_sign_ins_by_at_descending ON last_sign_ins (at DESC NULLS LAST, user_id DESC) INCLUDE (segment);

CREATE FUNCTION insert_last_sign_in() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO last_sign_ins (user_id, segment) SELECT id, segment FROM added;
    RETURN NULL;
END $$;

CREATE TRIGGER users_insert_last_sign_in AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION insert_last_sign_in();

CREATE FUNCTION move_last_sign_in() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE last_sign_ins SET segment = NEW.segment WHERE user_id = NEW.id;
    RETURN NULL;
END $$;

CREATE TRIGGER users_move_last_sign_in AFTER UPDATE ON users
FOR EACH ROW WHEN (NEW.segment <> OLD.segment) EXECUTE FUNCTION move_last_sign_in();

-- Consecutive failed sign-ins, by account and client network and by account alone (network ''). The account is
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

-- The client networks from which users signed in. Attempts from them are not part of the count of failures from
-- anywhere, so that strangers cannot lock users out.
CREATE TABLE known_networks (
    user_id bytea NOT NULL REFERENCES users ON DELETE CASCADE,
    -- The hash of the user's identifier and the network.
    network_hash bytea NOT NULL CHECK (octet_length(network_hash) = 32),
    last_sign_in timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, network_hash)
);

CREATE INDEX known_networks_by_last_sign_in ON known_networks (last_sign_in);

-- How many sign-ins were refused for each client network, of users and of unknown names, in each hour of the last
-- day. Those over a limit have no row in the audit log, so that no client network fills it.
CREATE TABLE sign_in_refusals (
    client_network text NOT NULL,
    known_user boolean NOT NULL,
    hour timestamptz NOT NULL,
    refusals integer NOT NULL,
    PRIMARY KEY (client_network, known_user, hour)
);

CREATE INDEX sign_in_refusals_by_hour ON sign_in_refusals (hour);

----------------------------------------------------------------------------------------------------------------------
-- Codes and notifications

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

-- Requests for codes, limited by mailbox and by client. A row exists while its requests count. The account and the
-- client network are hashes, so unknown addresses look like known ones.
CREATE TABLE code_requests (
    counted text NOT NULL CHECK (counted IN ('account', 'client')),
    subject bytea NOT NULL CHECK (octet_length(subject) = 32),
    -- When none of the requests counts any more. Each request postpones it.
    forgotten_at timestamptz NOT NULL,
    PRIMARY KEY (counted, subject)
);

CREATE INDEX code_requests_by_forgotten_at ON code_requests (forgotten_at);

-- Notifications to users, one row for each channel. The row is the outbox: workers claim it, send it and close
-- it; messages only carry its identifier. A request for an unknown address inserts the same rows without a user,
-- and nothing is sent for them.
CREATE TABLE notifications (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    user_id bytea REFERENCES users ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('forgot-password', 'verify-email')),
    channel text NOT NULL CHECK (channel IN ('webhook', 'mail', 'log')),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'fail')),
    -- Increases with every claim, so it is the number of the attempt.
    lease bigint NOT NULL DEFAULT 0,
    last_error text,
    request_id text NOT NULL,
    traceparent text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    -- Not attempted before this time.
    next_attempt timestamptz NOT NULL DEFAULT now(),
    -- Not published again by a sweep before this time.
    republish_at timestamptz NOT NULL,
    -- Claimed until this time.
    lease_until timestamptz,
    finished timestamptz,
    -- The code_generation that the request raised. A code is valid only while it is the user's, so a notification that
    -- is sent later makes no valid code. Null if the code does not depend on it.
    generation bigint,
    CHECK ((status = 'pending') = (finished IS NULL))
);

CREATE INDEX notifications_by_republish_at ON notifications (republish_at) WHERE finished IS NULL;
CREATE INDEX notifications_by_user ON notifications (user_id);
CREATE INDEX notifications_by_finished ON notifications (finished) WHERE finished IS NOT NULL;

----------------------------------------------------------------------------------------------------------------------
-- Deletions

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
    republish_at timestamptz NOT NULL,
    lease_until timestamptz,
    -- Changes with every claim: a worker with an older number has lost the job.
    lease bigint NOT NULL DEFAULT 0,
    finished timestamptz,
    -- Only 0.1.0 read it.
    epoch_transaction bigint,
    -- The age of a deletion counts from here. A deletion that failed can be started again.
    started timestamptz NOT NULL DEFAULT now(),
    -- Whether the user's address gave access to tasks when the deletion was requested.
    email_trusted boolean NOT NULL DEFAULT false,
    -- Shows how far the deletion of many tasks has come.
    deleted_tasks bigint NOT NULL DEFAULT 0 CHECK (deleted_tasks >= 0),
    CHECK ((status = 'in-progress') = (finished IS NULL)),
    CHECK (status <> 'completed' OR steps_done = steps_total),
    CHECK ((status = 'failed') = (failure IS NOT NULL))
);

CREATE UNIQUE INDEX deletions_one_in_progress ON deletions (user_id) WHERE status = 'in-progress';
CREATE INDEX deletions_by_republish_at ON deletions (republish_at) WHERE finished IS NULL;
CREATE INDEX deletions_by_user ON deletions (user_id);
CREATE INDEX deletions_by_created ON deletions (created, id);
CREATE INDEX deletions_by_finished ON deletions (finished) WHERE finished IS NOT NULL;
CREATE INDEX deletions_by_epoch_transaction ON deletions (epoch_transaction) WHERE epoch_transaction IS NOT NULL;
-- Failed deletions, which an administrator starts again.
CREATE INDEX deletions_failed ON deletions (user_id) WHERE status = 'failed';

CREATE TABLE deletion_steps (
    deletion_id bytea NOT NULL REFERENCES deletions ON DELETE CASCADE,
    position integer NOT NULL CHECK (position > 0),
    name text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    finished timestamptz,
    PRIMARY KEY (deletion_id, position)
);

-- What the user-service was started with, so that the deletion-worker notices that its settings differ.
CREATE TABLE deletion_settings (
    one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    -- Whether new deletions have steps at a flow engine.
    with_engine boolean NOT NULL,
    recorded timestamptz NOT NULL DEFAULT now()
);

-- A user does not change while a deletion of the user is in progress. The database decides it, so that no request can
-- slip in between a check and its change. A transaction that ends a deletion locks the user first.
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
    allowed_private_components, metadata, email_confirmed, code_generation ON users
FOR EACH ROW WHEN (OLD.deletion_in_progress AND NEW.deletion_in_progress)
EXECUTE FUNCTION refuse_change_during_deletion();

----------------------------------------------------------------------------------------------------------------------
-- The audit log: who changed what, when, from which address. Rows are only ever added. They hold identifiers and no
-- names, and pseudonyms once a user is deleted. The crate `audit-log` has the statements; apart from the values of the
-- constraints and for the rows of unknown callers, it is the same in the schemas of both services.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- A month is a partition, so that deleting old rows is dropping a table.
CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    action text NOT NULL CHECK (action IN (
        'first-admin-made', 'user-created', 'user-updated', 'verification-requested', 'email-verified',
        'signed-in', 'sign-in-refused', 'password-changed', 'password-change-refused',
        'password-reset-requested', 'password-reset', 'user-deletion-requested', 'user-deletion-cancelled',
        'user-deletion-failed', 'user-deleted'
    )),
    actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'admin', 'service', 'anonymous')),
    actor_id bytea CHECK (octet_length(actor_id) = 12),
    subject_kind text CHECK (subject_kind IN ('user')),
    subject_id bytea CHECK (octet_length(subject_id) = 12),
    -- How the actor was authenticated.
    proof text CHECK (proof IN ('token', 'password', 'reset-code', 'verification-code')),
    client_address inet,
    request_id text NOT NULL CHECK (char_length(request_id) BETWEEN 1 AND 128),
    -- Names of changed fields, identifiers and numbers.
    detail jsonb CHECK (jsonb_typeof(detail) = 'object'),
    CHECK ((actor_kind IN ('user', 'admin')) = (actor_id IS NOT NULL)),
    CHECK ((subject_kind IS NULL) = (subject_id IS NULL))
) PARTITION BY RANGE (at);

-- The key. It is no constraint, because `pg_restore --clean` fails to drop a primary key of partitions. It serves the
-- default order and filters by time.
CREATE UNIQUE INDEX audit_log_by_time ON audit_log (at, id);
-- Each row that is inserted costs an entry in these, which the deletion of a user needs, and lists of a user's or a
-- task's entries. The number of a row breaks ties of a sort. Few rows have the same time, so they do without it.
CREATE INDEX audit_log_by_actor ON audit_log (actor_id, at) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_log_by_subject ON audit_log (subject_id, at) WHERE subject_id IS NOT NULL;
-- Autovacuum writes a summary of every 64 pages, which have about 3,000 rows. Inserting a row writes nothing. It serves
-- the filters by request and by rare actions; frequent actions are found in the order of time.
CREATE INDEX audit_log_by_request_or_action ON audit_log USING brin (
    request_id text_bloom_ops (n_distinct_per_range = 3000, false_positive_rate = 0.05),
    action text_bloom_ops (n_distinct_per_range = 16)
) WITH (pages_per_range = 64, autosummarize = on);
-- What unknown callers did to no known user: refused sign-ins and requests for codes under unknown names.
CREATE INDEX audit_log_without_subject ON audit_log (at, id) WHERE subject_id IS NULL AND actor_id IS NULL;

-- Takes all rights on a table from all roles but the owner.
CREATE FUNCTION revoke_all_on(protected regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    role text;
BEGIN
    FOR role IN
        SELECT DISTINCT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END
        FROM pg_class AS class, aclexplode(class.relacl) AS granted
        WHERE class.oid = protected AND granted.grantee <> class.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', protected, role);
    END LOOP;
END $$;

-- Rows of months without a partition. The services create partitions months ahead, so usually it is empty. Without it,
-- no user could be changed if that had failed for months.
CREATE TABLE audit_log_default PARTITION OF audit_log DEFAULT;
SELECT revoke_all_on('audit_log_default');

-- Creates the partition of a month. It is attached, because that blocks the default partition only, and not inserts of
-- months that have one. Roles that have rights on all new tables have none on a partition, or they could change its rows.
CREATE FUNCTION create_audit_log_partition(month date) RETURNS void LANGUAGE plpgsql SET timezone = 'UTC' AS $$
DECLARE
    partition text := 'audit_log_' || to_char(month, 'YYYYMM');
    since timestamptz := month;
    until timestamptz := month + interval '1 month';
BEGIN
    IF to_regclass(quote_ident(partition)) IS NOT NULL THEN
        RETURN;
    END IF;
    -- No partition was created for months, and rows of this month are in the default partition. They stay there, and
    -- the rest of the month joins them: moving them could take long, and new rows would wait for it. Attaching fails if
    -- the first row of the month is being inserted; the next call then finds it.
    IF EXISTS (SELECT FROM audit_log_default WHERE at >= since AND at < until) THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE audit_log INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);
    PERFORM revoke_all_on(partition::regclass);
    EXECUTE format('ALTER TABLE audit_log ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', partition, since, until);
END $$;

-- Creates the partitions of this month and of the next three. It runs with the owner's rights.
CREATE FUNCTION create_audit_log_partitions() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' SET lock_timeout = '100ms' AS $$
BEGIN
    -- Another replica is creating or dropping partitions.
    IF NOT pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.audit_log', 0)) THEN
        RETURN;
    END IF;
    FOR ahead IN 0..3 LOOP
        PERFORM create_audit_log_partition((date_trunc('month', now()) + ahead * interval '1 month')::date);
    END LOOP;
END $$;

-- Drops the oldest partition if all its rows are older than `older_than`, and returns its name, otherwise null. It
-- never drops rows of the last 30 days. It runs with the owner's rights.
--
-- It has to wait until no transaction uses the audit log, and all others wait behind it. So it waits only briefly, and
-- drops only one.
CREATE FUNCTION drop_audit_log_partition(older_than interval) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' SET lock_timeout = '100ms' AS $$
DECLARE
    before timestamptz := now() - older_than;
    oldest text;
BEGIN
    -- Compares the resulting time and not the interval, because an interval of months and negative days
    -- is longer than it looks.
    IF before IS NULL OR before > now() - interval '30 days' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the audit log is kept for 30 days at least';
    END IF;
    -- Another replica is creating or dropping partitions.
    IF NOT pg_try_advisory_xact_lock(hashtextextended(current_schema() || '.audit_log', 0)) THEN
        RETURN NULL;
    END IF;
    SELECT relname INTO oldest FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'audit_log'::regclass
        AND to_date(substring(relname FROM '^audit_log_(\d{6})$'), 'YYYYMM') + interval '1 month' <= before
    ORDER BY relname LIMIT 1;
    IF oldest IS NOT NULL THEN
        EXECUTE format('DROP TABLE %I', oldest);
    END IF;
    RETURN oldest;
END $$;

-- Deletes rows that do not go with their partition, at most `most`, but none of the last 30 days: rows without a
-- subject, after 30 days, and the oldest of the default partition, which is never dropped.
CREATE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    latest timestamptz := now() - interval '30 days';
    before timestamptz := now() - older_than;
    without_subject bigint;
    pruned bigint;
BEGIN
    -- Compares the resulting time and not the interval, because an interval of months and negative days
    -- is longer than it looks.
    IF before IS NULL OR before > latest THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the audit log is kept for 30 days at least';
    END IF;
    WITH free AS (
        SELECT at, id FROM audit_log WHERE subject_id IS NULL AND actor_id IS NULL AND at < latest
        LIMIT most FOR UPDATE SKIP LOCKED
    )
    DELETE FROM audit_log AS log USING free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS without_subject = ROW_COUNT;
    WITH free AS (
        SELECT at, id FROM audit_log_default WHERE at < before
        ORDER BY at LIMIT most - without_subject FOR UPDATE SKIP LOCKED
    )
    DELETE FROM audit_log_default AS log USING free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN without_subject + pruned;
END $$;

-- The two functions below read only the rows that they change: by an index until there are `most`, and each again by
-- its key. The planner would prefer to read whole partitions, because it does not know that a key is looked up in one
-- partition only.

CREATE FUNCTION pseudonymise_audit_log(who bytea, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    pseudonym bytea := substring(sha256(who) FOR 12);
    acted bigint;
    concerned bigint;
BEGIN
    WITH free AS (
        SELECT at, id FROM audit_log WHERE actor_id = who LIMIT most FOR UPDATE SKIP LOCKED
    )
    UPDATE audit_log AS log SET
        actor_id = pseudonym,
        subject_id = CASE WHEN subject_id = who THEN pseudonym ELSE subject_id END,
        client_address = NULL
    FROM free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS acted = ROW_COUNT;
    WITH free AS (
        SELECT at, id FROM audit_log WHERE subject_id = who LIMIT most - acted FOR UPDATE SKIP LOCKED
    )
    UPDATE audit_log AS log SET
        subject_id = pseudonym,
        -- The address of another user who changed this one stays.
        client_address = CASE WHEN actor_id IS NULL THEN NULL ELSE client_address END
    FROM free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS concerned = ROW_COUNT;
    RETURN acted + concerned;
END $$;

CREATE FUNCTION forget_audit_addresses(whose bytea[], most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
DECLARE
    acted bigint;
    concerned bigint;
BEGIN
    WITH free AS (
        SELECT at, id FROM audit_log
        WHERE actor_id = ANY (whose) AND client_address IS NOT NULL
        LIMIT most FOR UPDATE SKIP LOCKED
    )
    UPDATE audit_log AS log SET client_address = NULL FROM free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS acted = ROW_COUNT;
    WITH free AS (
        SELECT at, id FROM audit_log
        WHERE subject_id = ANY (whose) AND actor_id IS NULL AND client_address IS NOT NULL
        LIMIT most - acted FOR UPDATE SKIP LOCKED
    )
    UPDATE audit_log AS log SET client_address = NULL FROM free WHERE log.at = free.at AND log.id = free.id;
    GET DIAGNOSTICS concerned = ROW_COUNT;
    RETURN acted + concerned;
END $$;

-- Every role that may insert into new tables may insert into this one, except the columns `id` and `at`, and may
-- call the functions. No role but the owner may change rows.
REVOKE ALL ON FUNCTION create_audit_log_partition, revoke_all_on, create_audit_log_partitions, drop_audit_log_partition,
    prune_audit_log, forget_audit_addresses, pseudonymise_audit_log FROM PUBLIC;
DO $$
DECLARE
    role text;
    inserts boolean;
BEGIN
    FOR role, inserts IN
        SELECT CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE granted.grantee::regrole::text END,
            bool_or(granted.privilege_type = 'INSERT')
        FROM pg_catalog.pg_class AS class, aclexplode(class.relacl) AS granted
        WHERE class.oid = 'audit_log'::regclass AND granted.grantee <> class.relowner
        GROUP BY granted.grantee
    LOOP
        EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON audit_log FROM %s', role);
        IF inserts THEN
            EXECUTE format('GRANT INSERT (action, actor_kind, actor_id, subject_kind, subject_id, proof,
                client_address, request_id, detail) ON audit_log TO %s', role);
            EXECUTE format('GRANT EXECUTE ON FUNCTION create_audit_log_partitions, drop_audit_log_partition,
                prune_audit_log, forget_audit_addresses, pseudonymise_audit_log TO %s', role);
        END IF;
    END LOOP;
END $$;

SELECT create_audit_log_partitions();
