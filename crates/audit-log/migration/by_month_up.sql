-- Keeps each month of the audit log in a partition of its own, so that deleting old rows is dropping a table, and
-- replaces indexes that were expensive to write. Inserts wait until the existing rows are moved.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

ALTER TABLE audit_log RENAME TO former_audit_log;
ALTER SEQUENCE audit_log_id_seq RENAME TO former_audit_log_id_seq;
DROP INDEX audit_log_by_action, audit_log_by_actor, audit_log_by_subject, audit_log_by_request;

-- Each service has its own constraints on the values.
CREATE TABLE audit_log (LIKE former_audit_log INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING IDENTITY)
PARTITION BY RANGE (at);

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
-- no task could be decided if that had failed for months.
CREATE TABLE audit_log_default PARTITION OF audit_log DEFAULT;
SELECT revoke_all_on('audit_log_default');

-- Creates the partition of a month. It is attached, because that blocks the default partition only, and not inserts of
-- months that have one. Roles that have rights on
-- all new tables have none on a partition, or they could change its rows.
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

-- Deletes the oldest rows of the default partition, which is never dropped: at most `most`, but none of the last
-- 30 days.
CREATE OR REPLACE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    before timestamptz := now() - older_than;
    pruned bigint;
BEGIN
    IF before IS NULL OR before > now() - interval '30 days' THEN
        RAISE invalid_parameter_value USING MESSAGE = 'the audit log is kept for 30 days at least';
    END IF;
    DELETE FROM audit_log_default WHERE (at, id) IN (
        SELECT at, id FROM audit_log_default WHERE at < before
        ORDER BY at, id LIMIT most FOR UPDATE SKIP LOCKED
    );
    GET DIAGNOSTICS pruned = ROW_COUNT;
    RETURN pruned;
END $$;

-- The two functions below read only the rows that they change: by an index until there are `most`, and each again by
-- its key. The planner would prefer to read whole partitions, because it does not know that a key is looked up in one
-- partition only.

CREATE OR REPLACE FUNCTION pseudonymise_audit_log(who bytea, most integer) RETURNS bigint
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

CREATE OR REPLACE FUNCTION forget_audit_addresses(whose bytea[], most integer) RETURNS bigint
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

-- The rights on the table and its columns, and on the functions, are those of the former ones.
REVOKE ALL ON FUNCTION create_audit_log_partitions, drop_audit_log_partition FROM PUBLIC;
REVOKE ALL ON FUNCTION create_audit_log_partition, revoke_all_on FROM PUBLIC;
SELECT revoke_all_on('audit_log');
DO $$
DECLARE
    privilege text;
    granted text;
    role text;
BEGIN
    FOR privilege, granted, role IN
        SELECT entry.privilege_type, given.what,
            CASE entry.grantee WHEN 0 THEN 'PUBLIC' ELSE entry.grantee::regrole::text END
        FROM (
            SELECT relacl, 'ON audit_log', relowner FROM pg_class WHERE oid = 'former_audit_log'::regclass
            UNION ALL
            SELECT attacl, format('(%I) ON audit_log', attname), relowner
            FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
            WHERE attrelid = 'former_audit_log'::regclass AND NOT attisdropped
            UNION ALL
            SELECT proacl, 'ON FUNCTION create_audit_log_partitions, drop_audit_log_partition', proowner
            FROM pg_proc WHERE oid = 'prune_audit_log'::regproc
        ) AS given (acl, what, owner), aclexplode(given.acl) AS entry
        WHERE entry.grantee <> given.owner
    LOOP
        EXECUTE format('GRANT %s %s TO %s', privilege, granted, role);
    END LOOP;
END $$;

DO $$
DECLARE
    month date;
BEGIN
    FOR month IN SELECT DISTINCT date_trunc('month', at AT TIME ZONE 'UTC') FROM former_audit_log LOOP
        PERFORM create_audit_log_partition(month);
    END LOOP;
END $$;
SELECT create_audit_log_partitions();
INSERT INTO audit_log OVERRIDING SYSTEM VALUE SELECT * FROM former_audit_log ORDER BY at, id;
SELECT setval('audit_log_id_seq', last_value, is_called) FROM former_audit_log_id_seq;
DROP TABLE former_audit_log;

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
