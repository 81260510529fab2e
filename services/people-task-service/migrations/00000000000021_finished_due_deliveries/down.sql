-- Without the column they would be decisions.
DELETE FROM finished_deliveries WHERE due_at IS NOT NULL;
ALTER TABLE finished_deliveries DROP COLUMN due_at;
