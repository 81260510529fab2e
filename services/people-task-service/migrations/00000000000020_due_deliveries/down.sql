-- Without the column they would be decisions.
DELETE FROM deliveries WHERE due_at IS NOT NULL;
ALTER TABLE deliveries DROP COLUMN due_at;
