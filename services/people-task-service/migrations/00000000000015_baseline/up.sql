-- The schema of 0.2.0: tasks that a person approves or rejects, their webhooks, and the deliveries of decisions. A
-- database of 0.2.0 has this migration. One of an earlier version must be upgraded by 0.2.0 first.
--
-- Identifiers are twelve bytes that begin with the time, so they sort by age.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Twelve bytes that sort by age, as the services generate them: the seconds since 1970, then random bytes.
CREATE FUNCTION new_id() RETURNS bytea LANGUAGE sql VOLATILE AS $$
    SELECT substr(int8send(extract(epoch FROM now())::bigint), 5) || substr(uuid_send(gen_random_uuid()), 9)
$$;

----------------------------------------------------------------------------------------------------------------------
-- Tasks

CREATE TABLE tasks (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    creator bytea NOT NULL CHECK (octet_length(creator) = 12),
    requester text NOT NULL,
    approver text NOT NULL,
    -- The addresses in lower case, which relations compare.
    requester_key text NOT NULL CHECK (requester_key = lower(requester)),
    approver_key text NOT NULL CHECK (approver_key = lower(approver)),
    title text NOT NULL CHECK (char_length(title) BETWEEN 1 AND 500),
    description text NOT NULL CHECK (char_length(description) <= 20000),
    decision_by timestamptz,
    public boolean NOT NULL,
    -- SHA-256 hashes of the two secrets. A secret begins with its task's identifier.
    approver_secret bytea NOT NULL CHECK (octet_length(approver_secret) = 32),
    requester_secret bytea NOT NULL CHECK (octet_length(requester_secret) = 32),
    created timestamptz NOT NULL DEFAULT now(),
    -- Whether the task is of 0.1.0, whose secrets do not begin with an identifier and are found by an index.
    has_random_secrets boolean NOT NULL DEFAULT false
);

-- A list is the union of three roles. Each has an index for the default order. With the identifier, an index has all
-- that selects a page, also if many tasks have the same time.
CREATE INDEX tasks_by_creator ON tasks (creator, created, id);
CREATE INDEX tasks_by_requester ON tasks (requester_key, created, id);
CREATE INDEX tasks_by_approver ON tasks (approver_key, created, id);
-- The administrator's list of all tasks.
CREATE INDEX tasks_by_created ON tasks (created, id);
CREATE INDEX tasks_by_title ON tasks (lower(title), id);
-- Tasks without this time come last in both directions, so lists read them separately.
CREATE INDEX tasks_by_decision_by ON tasks (decision_by) WHERE decision_by IS NOT NULL;
CREATE INDEX tasks_by_approver_secret ON tasks (approver_secret) WHERE has_random_secrets;
CREATE INDEX tasks_by_requester_secret ON tasks (requester_secret) WHERE has_random_secrets;
-- Counts of a person's tasks read nothing but the number of entries, and an index of one column has all entries of a
-- value in a few pages. The conditions always hold. Statements that name them use these indexes.
CREATE INDEX tasks_counted_by_creator ON tasks (creator) WHERE octet_length(creator) > 0;
CREATE INDEX tasks_counted_by_approver ON tasks (approver_key) WHERE octet_length(approver_key) > 0;
CREATE INDEX tasks_counted_by_requester ON tasks (requester_key) WHERE octet_length(requester_key) > 0;

-- The columns of a task that change with a decision, and copies of those that lists sort and filter by: a list reads
-- one narrow table, and a decision changes one row that no index but its key covers. Each page has room for new
-- versions of its rows, so an update writes no index.
CREATE TABLE task_states (
    task_id bytea PRIMARY KEY CONSTRAINT task_states_task_id_check1 CHECK (octet_length(task_id) = 12),
    status text NOT NULL DEFAULT 'pending'
        CONSTRAINT task_states_status_check1 CHECK (status IN ('pending', 'approved', 'rejected')),
    mtime timestamptz NOT NULL DEFAULT now(),
    decision_made timestamptz,
    -- Increases with every change of the task and of its set of webhooks. What was judged by another version does
    -- not take effect.
    version integer NOT NULL DEFAULT 0,
    -- Copies of columns of `tasks`. Whatever changes one there changes it here.
    public boolean NOT NULL,
    creator bytea NOT NULL,
    created timestamptz NOT NULL,
    decision_by timestamptz,
    approver_key text NOT NULL,
    requester_key text NOT NULL,
    -- The title in lower case.
    title_key text NOT NULL,
    CONSTRAINT task_states_check1 CHECK ((status = 'pending') = (decision_made IS NULL))
) WITH (fillfactor = 80);

-- Pending tasks in the default order, which people open all the time. A decision takes a task out of these indexes
-- without writing them.
CREATE INDEX pending_tasks_by_creator ON task_states (creator, created, task_id) WHERE status = 'pending';
CREATE INDEX pending_tasks_by_approver ON task_states (approver_key, created, task_id) WHERE status = 'pending';
CREATE INDEX pending_tasks_by_requester ON task_states (requester_key, created, task_id) WHERE status = 'pending';

----------------------------------------------------------------------------------------------------------------------
-- Webhooks and deliveries

CREATE TABLE webhooks (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    task_id bytea NOT NULL,
    registered_by bytea NOT NULL CHECK (octet_length(registered_by) = 12),
    url text NOT NULL CHECK (char_length(url) <= 2048),
    -- The signing secret in its whsec_ form. It is not hashed, because it signs.
    secret text,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'fail')),
    -- Whether bodies also have taskId, as on the Appmixer plugin paths.
    with_task_id boolean NOT NULL DEFAULT false,
    created timestamptz NOT NULL DEFAULT now(),
    -- The unit of fairness between receivers: the host of the URL, whatever its scheme and port.
    host text NOT NULL
-- The status changes once.
) WITH (fillfactor = 55);

CREATE INDEX webhooks_by_task ON webhooks (task_id);
-- Erasure finds what a user registered for other tasks.
CREATE INDEX webhooks_by_registrant ON webhooks (registered_by);

-- Processes that deliver. The row of one that ended without deleting it is deleted by another, soon after its last
-- beat.
CREATE TABLE delivery_workers (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    beat timestamptz NOT NULL DEFAULT now(),
    -- How many concurrent requests to each host it may have. Their sum is at most the limit of a host.
    places integer NOT NULL DEFAULT 0 CHECK (places >= 0)
) WITH (fillfactor = 10);

-- A decision on its way to one webhook. The row is the outbox entry: it is inserted with the decision, and leaves the
-- table when it is finished.
CREATE TABLE deliveries (
    id bytea PRIMARY KEY CONSTRAINT deliveries_id_check1 CHECK (octet_length(id) = 12),
    webhook_id bytea NOT NULL CHECK (octet_length(webhook_id) = 12),
    task_id bytea NOT NULL CHECK (octet_length(task_id) = 12),
    host text NOT NULL,
    request_id text NOT NULL,
    traceparent text NOT NULL,
    created timestamptz NOT NULL DEFAULT now(),
    -- No attempt is made before this moment.
    next_attempt timestamptz NOT NULL DEFAULT now(),
    -- The worker that has claimed it.
    worker_id integer,
    -- Increases with every claim. A result with an older number is dropped.
    lease integer NOT NULL DEFAULT 0,
    -- The number of failed attempts since the schedule began.
    attempts integer NOT NULL DEFAULT 0,
    -- Claims in a row whose worker ended without a result.
    lost_claims integer NOT NULL DEFAULT 0,
    -- How many of these workers ended while they tried it on suspicion, apart from others.
    lost_trials integer NOT NULL DEFAULT 0,
    on_trial boolean NOT NULL DEFAULT false,
    -- The newest attempts, oldest first, as the API shows them.
    attempt_log jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(attempt_log) = 'array')
-- Every delivery is updated several times, so dead rows are vacuumed early.
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX deliveries_by_task ON deliveries (task_id);
CREATE INDEX deliveries_by_host ON deliveries (host, next_attempt);
CREATE INDEX deliveries_suspected ON deliveries (next_attempt) WHERE lost_claims >= 2;

-- Deliveries that were sent or have failed. A day of them is a partition, so that deleting old ones is dropping a
-- table.
CREATE TABLE finished_deliveries (
    id bytea NOT NULL,
    webhook_id bytea NOT NULL,
    task_id bytea NOT NULL,
    status text NOT NULL CHECK (status IN ('sent', 'fail')),
    request_id text NOT NULL,
    traceparent text NOT NULL,
    created timestamptz NOT NULL,
    finished timestamptz NOT NULL DEFAULT now(),
    -- The claim that finished it. A claim of a delivery that is sent again has a higher number.
    lease integer NOT NULL DEFAULT 0,
    attempt_log jsonb NOT NULL
) PARTITION BY RANGE (finished);

CREATE INDEX finished_deliveries_by_id ON finished_deliveries (id);
CREATE INDEX finished_deliveries_by_task ON finished_deliveries (task_id);

-- All deliveries, as lists show them.
CREATE VIEW all_deliveries AS
SELECT id, webhook_id, task_id, 'pending'::text AS status, created, next_attempt, attempt_log FROM deliveries
UNION ALL
SELECT id, webhook_id, task_id, status, created, NULL, attempt_log FROM finished_deliveries;

-- Creates the partition of a day. It is attached, because that does not block the table.
CREATE FUNCTION create_finished_deliveries_partition(day date) RETURNS void LANGUAGE plpgsql
SET timezone = 'UTC' AS $$
DECLARE
    partition text := 'finished_deliveries_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass(quote_ident(partition)) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE finished_deliveries INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', partition);
        EXECUTE format('ALTER TABLE finished_deliveries ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            partition, day::timestamptz, (day + 1)::timestamptz);
    END IF;
END $$;
REVOKE ALL ON FUNCTION create_finished_deliveries_partition FROM PUBLIC;

-- Creates the partitions of the next two weeks. It runs with the owner's rights.
CREATE FUNCTION create_finished_deliveries_partitions() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' SET lock_timeout = '2s' AS $$
BEGIN
    -- Workers that start together do this one after the other.
    PERFORM pg_advisory_xact_lock(hashtextextended('finished_deliveries', 0));
    FOR ahead IN 0..14 LOOP
        PERFORM create_finished_deliveries_partition(current_date + ahead);
    END LOOP;
END $$;

-- Drops the oldest partition whose deliveries have all been finished for longer than `keep`. Returns whether there was
-- one. It runs with the owner's rights. While a statement reads the table, the drop waits and everything else waits
-- for the drop, so it soon gives up.
CREATE FUNCTION drop_finished_deliveries_partition(keep interval) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET timezone = 'UTC' SET lock_timeout = '100ms' AS $$
DECLARE
    partition name;
BEGIN
    SELECT relname INTO partition FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'finished_deliveries'::regclass
        AND to_date(substring(relname FROM '^finished_deliveries_(\d{8})$'), 'YYYYMMDD') + 1 <= now() - keep
    ORDER BY relname LIMIT 1;
    IF partition IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %I', partition);
    RETURN true;
END $$;

SELECT create_finished_deliveries_partitions();

-- Foreign keys would lock the row of a task for each row that is inserted for it. Rows are inserted only together
-- with a change of the task's version. These functions delete them with the task or the webhook. A task's deletion
-- looks only at those partitions of finished deliveries that can have its rows.
CREATE FUNCTION delete_rows_of_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
    -- A delivery is finished after its task was created. The clock may have been set back since then.
    since timestamptz := (SELECT min(created) FROM deleted) - interval '1 day';
    until timestamptz := clock_timestamp() + interval '1 day';
BEGIN
    -- First, because a decision or a registration that is under way adds rows until it ends.
    DELETE FROM task_states WHERE task_id = ANY (ids);
    DELETE FROM deliveries WHERE task_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (ids) AND finished BETWEEN since AND until;
    DELETE FROM webhooks WHERE task_id = ANY (ids);
    RETURN NULL;
END $$;
CREATE TRIGGER delete_rows_of_tasks AFTER DELETE ON tasks REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION delete_rows_of_tasks();

CREATE FUNCTION delete_deliveries_of_webhooks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
    tasks bytea[] := ARRAY(SELECT DISTINCT task_id FROM deleted);
BEGIN
    -- A decision that has read these webhooks does not take effect any more, or has added its deliveries by then.
    UPDATE task_states SET version = version + 1 WHERE task_id = ANY (tasks);
    DELETE FROM deliveries WHERE task_id = ANY (tasks) AND webhook_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (tasks) AND webhook_id = ANY (ids);
    RETURN NULL;
END $$;
CREATE TRIGGER delete_deliveries_of_webhooks AFTER DELETE ON webhooks REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION delete_deliveries_of_webhooks();

----------------------------------------------------------------------------------------------------------------------
-- Erased users

-- A service that cannot read the revocation feed accepts their tokens, but none of them adds a row after the erasure.
CREATE TABLE erased_users (
    -- As in the audit log: the identifier itself is not kept.
    pseudonym bytea NOT NULL CHECK (octet_length(pseudonym) = 12),
    -- The incarnation of the user service's database; empty if unknown. After a restore the user may exist again,
    -- with tokens of another one.
    incarnation text NOT NULL,
    erased timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pseudonym, incarnation)
);

CREATE INDEX erased_users_by_erased ON erased_users (erased);

CREATE FUNCTION erasure_lock(who bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(encode(who, 'hex'), 0)
$$;

-- Whether a user may add rows. An erasure waits for the transaction that asks, and then deletes what it added. So
-- the lock must come before the answer, which each statement of this function reads from a new snapshot.
CREATE FUNCTION may_add_rows(who bytea, of_token text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(people_task.erasure_lock(who));
    RETURN NOT EXISTS (
        SELECT FROM people_task.erased_users
        WHERE pseudonym = substring(sha256(who) FOR 12)
            AND (of_token IS NULL OR incarnation IN ('', of_token))
    );
END $$;

-- Records that a user is being erased, when no transaction that may still add rows for the user is left.
CREATE FUNCTION record_erased_user(who bytea, of_incarnation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(people_task.erasure_lock(who));
    INSERT INTO people_task.erased_users (pseudonym, incarnation)
    VALUES (substring(sha256(who) FOR 12), coalesce(of_incarnation, ''))
    ON CONFLICT DO NOTHING;
END $$;

----------------------------------------------------------------------------------------------------------------------
-- The audit log: who changed what, when, from which address. Rows are only ever added. They hold identifiers and no
-- names, and pseudonyms once a user is deleted. The crate `audit-log` has the statements; apart from the values of the
-- constraints, it is the same in the schemas of both services.

-- A month is a partition, so that deleting old rows is dropping a table.
CREATE TABLE audit_log (
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    action text NOT NULL CHECK (action IN (
        'task-created', 'task-edited', 'task-approved', 'task-rejected', 'webhook-registered',
        'webhook-removed', 'delivery-redelivered', 'user-erased'
    )),
    actor_kind text NOT NULL CHECK (actor_kind IN ('user', 'admin', 'service', 'approver-secret', 'requester-secret')),
    actor_id bytea CHECK (octet_length(actor_id) = 12),
    subject_kind text CHECK (subject_kind IN ('task', 'user')),
    subject_id bytea CHECK (octet_length(subject_id) = 12),
    -- How the actor was authenticated.
    proof text CHECK (proof IN ('token', 'task-secret', 'service-token')),
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

-- Deletes the oldest rows of the default partition, which is never dropped: at most `most`, but none of the last
-- 30 days.
CREATE FUNCTION prune_audit_log(older_than interval, most integer) RETURNS bigint
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
