-- Renames columns to the words that the code uses. Stop every process of an earlier version first: it reads and
-- writes the old names.

ALTER TABLE deliveries RENAME COLUMN wake_at TO republish_at;
ALTER TABLE deliveries RENAME COLUMN unanswered TO claims_without_result;
ALTER INDEX deliveries_by_wake_at RENAME TO deliveries_by_republish_at;
ALTER INDEX deliveries_unanswered RENAME TO deliveries_without_result;
