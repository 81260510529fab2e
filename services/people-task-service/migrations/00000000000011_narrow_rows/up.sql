-- Makes a decision and its deliveries cheap: a decision changes one narrow row that no index but its key covers, what
-- waits to be delivered stands apart from what is finished, and no index has random keys. Stop every process of an
-- earlier version first: it reads and writes the old tables.

-- The functions below run with this search path.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- What a decision changes of a task. Each row has room for its new versions, so an update writes no index.
CREATE TABLE task_states (
    task_id bytea PRIMARY KEY CHECK (octet_length(task_id) = 12),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected')),
    mtime timestamptz NOT NULL DEFAULT now(),
    decision_made timestamptz,
    -- Increases with every change of the task and of its set of webhooks. What was judged by another version does
    -- not take effect.
    version integer NOT NULL DEFAULT 0,
    CHECK ((status = 'pending') = (decision_made IS NULL))
) WITH (fillfactor = 50);
INSERT INTO task_states (task_id, status, mtime, decision_made)
SELECT id, status, mtime, decision_made FROM tasks ORDER BY id;

DROP TRIGGER touch_task ON webhooks;
DROP FUNCTION touch_task();
DROP FUNCTION record_audit_entry(jsonb);

-- With them go the indexes of these columns.
ALTER TABLE tasks DROP COLUMN status, DROP COLUMN mtime, DROP COLUMN decision_made;

-- A secret begins with its task's identifier. Only earlier ones are found by an index.
ALTER TABLE tasks DROP CONSTRAINT tasks_approver_secret_key, DROP CONSTRAINT tasks_requester_secret_key;
ALTER TABLE tasks ADD COLUMN has_random_secrets boolean NOT NULL DEFAULT true;
ALTER TABLE tasks ALTER COLUMN has_random_secrets SET DEFAULT false;
CREATE INDEX tasks_by_approver_secret ON tasks (approver_secret) WHERE has_random_secrets;
CREATE INDEX tasks_by_requester_secret ON tasks (requester_secret) WHERE has_random_secrets;

-- The identifier breaks ties of a sort. Few tasks have the same time, so no index needs it.
DROP INDEX tasks_by_creator, tasks_by_requester, tasks_by_approver, tasks_by_created, tasks_by_decision_by,
    tasks_by_decision_by_descending;
CREATE INDEX tasks_by_creator ON tasks (creator, created);
CREATE INDEX tasks_by_requester ON tasks (requester_key, created);
CREATE INDEX tasks_by_approver ON tasks (approver_key, created);
CREATE INDEX tasks_by_created ON tasks (created);
-- Tasks without this time come last in both directions, so lists read them separately.
CREATE INDEX tasks_by_decision_by ON tasks (decision_by) WHERE decision_by IS NOT NULL;

-- The unit of fairness between receivers: the host of the URL, whatever its scheme and port.
ALTER TABLE webhooks ADD COLUMN host text;
UPDATE webhooks SET host = coalesce(
    nullif(rtrim(lower(substring(url FROM '^[A-Za-z]+://(?:[^/?#@]*@)?(\[[^]]*\]|[^:/?#]*)')), '.'), ''), url);
ALTER TABLE webhooks ALTER COLUMN host SET NOT NULL;
-- Webhooks are found by their task or by their key, and never by a second column of an index.
DROP INDEX webhooks_by_task, webhooks_by_registrant;
CREATE INDEX webhooks_by_task ON webhooks (task_id);
CREATE INDEX webhooks_by_registrant ON webhooks (registered_by);
-- The status changes once.
ALTER TABLE webhooks SET (fillfactor = 55);

ALTER TABLE deliveries RENAME TO former_deliveries;
ALTER TABLE former_deliveries DROP CONSTRAINT deliveries_pkey CASCADE;
DROP INDEX deliveries_by_task;

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
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
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
REVOKE ALL ON FUNCTION create_finished_deliveries_partition FROM PUBLIC;

DO $$
DECLARE
    day date;
BEGIN
    SET LOCAL timezone = 'UTC';
    FOR day IN
        SELECT DISTINCT finished::date FROM former_deliveries WHERE finished IS NOT NULL
        UNION
        SELECT current_date + ahead FROM generate_series(0, 14) AS ahead
    LOOP
        PERFORM create_finished_deliveries_partition(day);
    END LOOP;
END $$;

CREATE FUNCTION pg_temp.attempt_log_of(delivery bytea) RETURNS jsonb LANGUAGE sql AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'durationMs', duration_ms,
        'statusCode', status_code, 'error', error, 'response', response) ORDER BY number), '[]')
    FROM (SELECT * FROM delivery_attempts WHERE delivery_id = delivery ORDER BY number DESC LIMIT 100) AS newest
$$;
INSERT INTO deliveries
    (id, webhook_id, task_id, host, request_id, traceparent, created, next_attempt, lease, attempts, attempt_log)
SELECT former.id, webhook_id, former.task_id, host, request_id, traceparent, former.created, next_attempt, lease,
    attempts, pg_temp.attempt_log_of(former.id)
FROM former_deliveries AS former JOIN webhooks ON webhooks.id = webhook_id
WHERE finished IS NULL;
INSERT INTO finished_deliveries
    (id, webhook_id, task_id, status, request_id, traceparent, created, finished, attempt_log)
SELECT id, webhook_id, task_id, status, request_id, traceparent, created, finished, pg_temp.attempt_log_of(id)
FROM former_deliveries WHERE finished IS NOT NULL;
DROP TABLE delivery_attempts;
DROP TABLE former_deliveries;

-- Foreign keys would lock the row of a task for each row that is inserted for it. Rows are inserted only together
-- with a change of the task's version. These functions delete them with the task or the webhook.
ALTER TABLE webhooks DROP CONSTRAINT webhooks_task_id_fkey;

CREATE FUNCTION delete_rows_of_tasks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    ids bytea[] := ARRAY(SELECT id FROM deleted);
BEGIN
    -- First, because a decision or a registration that is under way adds rows until it ends.
    DELETE FROM task_states WHERE task_id = ANY (ids);
    DELETE FROM deliveries WHERE task_id = ANY (ids);
    DELETE FROM finished_deliveries WHERE task_id = ANY (ids);
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

-- Twelve bytes that sort by age, as the services generate them: the seconds since 1970, then random bytes.
CREATE FUNCTION new_id() RETURNS bytea LANGUAGE sql VOLATILE AS $$
    SELECT substr(int8send(extract(epoch FROM now())::bigint), 5) || substr(uuid_send(gen_random_uuid()), 9)
$$;
