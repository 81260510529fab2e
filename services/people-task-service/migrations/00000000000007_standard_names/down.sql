ALTER INDEX deliveries_without_result RENAME TO deliveries_unanswered;
ALTER INDEX deliveries_by_republish_at RENAME TO deliveries_by_wake_at;
ALTER TABLE deliveries RENAME COLUMN claims_without_result TO unanswered;
ALTER TABLE deliveries RENAME COLUMN republish_at TO wake_at;
