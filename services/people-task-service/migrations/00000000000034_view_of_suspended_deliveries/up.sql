-- The new column comes last, so that statements of running processes stay as they are.
CREATE OR REPLACE VIEW all_deliveries AS
SELECT id, webhook_id, task_id, 'pending'::text AS status, created, next_attempt, attempt_log, due_at,
    suspended_for IS NOT NULL AS suspended
FROM deliveries
UNION ALL
SELECT id, webhook_id, task_id, status, created, NULL, attempt_log, due_at, false FROM finished_deliveries;
