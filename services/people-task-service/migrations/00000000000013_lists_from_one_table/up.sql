-- Lets a list read one narrow table: `task_states` gets copies of all that lists sort and filter by. Pending tasks have
-- indexes of their own. Stop every process of an earlier version first: it does not write the copies.

ALTER TABLE task_states RENAME TO former_task_states;
ALTER TABLE former_task_states DROP CONSTRAINT task_states_pkey;

CREATE TABLE task_states (
    task_id bytea PRIMARY KEY CHECK (octet_length(task_id) = 12),
    status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'approved', 'rejected')),
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
    CHECK ((status = 'pending') = (decision_made IS NULL))
) WITH (fillfactor = 80);
INSERT INTO task_states (task_id, status, mtime, decision_made, version, public, creator, created, decision_by,
    approver_key, requester_key, title_key)
SELECT task_id, status, mtime, decision_made, version, public, creator, created, decision_by, approver_key,
    requester_key, lower(title)
FROM former_task_states JOIN tasks ON id = task_id ORDER BY task_id;
DROP TABLE former_task_states;

-- Pending tasks in the default order, which people open all the time. A decision takes a task out of these indexes
-- without writing them.
CREATE INDEX pending_tasks_by_creator ON task_states (creator, created, task_id) WHERE status = 'pending';
CREATE INDEX pending_tasks_by_approver ON task_states (approver_key, created, task_id) WHERE status = 'pending';
CREATE INDEX pending_tasks_by_requester ON task_states (requester_key, created, task_id) WHERE status = 'pending';

-- With the identifier, an index has all that selects a page, also if many tasks have the same time.
DROP INDEX tasks_by_creator, tasks_by_requester, tasks_by_approver, tasks_by_created;
CREATE INDEX tasks_by_creator ON tasks (creator, created, id);
CREATE INDEX tasks_by_requester ON tasks (requester_key, created, id);
CREATE INDEX tasks_by_approver ON tasks (approver_key, created, id);
CREATE INDEX tasks_by_created ON tasks (created, id);

-- It was written with each task, and for a pattern of two letters it is no faster than reading the narrow table.
DROP INDEX tasks_title_pattern;
