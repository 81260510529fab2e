-- Half of the tasks are pending, one in a thousand is rejected, and the others are approved. Half are to be decided by a
-- certain time. The columns of each table stand only here.
WITH rows AS MATERIALIZED (
    SELECT decode(lpad(to_hex(n), 24, '0'), 'hex') AS id, decode({creator}, 'hex') AS creator,
        {requester} AS requester, {approver} AS approver, 'Purchase ' || n AS title,
        rpad('A chair for the office, the old one jams.', {description}, ' The old one jams.') AS description,
        status, created,
        CASE WHEN n % 4 < 2 THEN created + interval '7 days' END AS decision_by,
        CASE WHEN status <> 'pending' THEN created END AS decision_made
    FROM generate_series(1, {count}) AS n,
        LATERAL (SELECT now() - interval '1 second' * ({count} - n) AS created,
            CASE WHEN n % 2 = 0 THEN 'pending' WHEN n % 1000 = 7 THEN 'rejected' ELSE 'approved' END AS status
        ) AS states
), added AS (
    INSERT INTO people_task.tasks (id, creator, requester, approver, requester_key, approver_key, title,
        description, decision_by, public, approver_secret, requester_secret, created)
    SELECT id, creator, requester, approver, requester, approver, title,
        description, decision_by, false, sha256('a' || id), sha256('r' || id), created
    FROM rows
)
INSERT INTO people_task.task_states (task_id, status, mtime, decision_made, public, creator, created, decision_by,
    approver_key, requester_key, title_key)
SELECT id, status, created, decision_made, false, creator, created, decision_by, approver, requester, lower(title)
FROM rows
