CREATE INDEX deliveries_by_next_attempt ON deliveries (next_attempt) WHERE status = 'pending';
DROP INDEX deliveries_unanswered;
ALTER TABLE deliveries DROP COLUMN unanswered;
