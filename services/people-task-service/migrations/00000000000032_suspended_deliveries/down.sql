ALTER TABLE deliveries DROP COLUMN suspended_for;
