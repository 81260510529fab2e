-- A view cannot lose a column.
DROP VIEW all_deliveries;
CREATE VIEW all_deliveries AS
SELECT id, webhook_id, task_id, 'pending'::text AS status, created, next_attempt, attempt_log, due_at FROM deliveries
UNION ALL
SELECT id, webhook_id, task_id, status, created, NULL, attempt_log, due_at FROM finished_deliveries;
