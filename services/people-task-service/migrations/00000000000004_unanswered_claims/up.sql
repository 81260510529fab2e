-- A delivery whose attempts never finish, because they crash the worker, is given up.

-- The number of claims in a row without a result.
ALTER TABLE deliveries ADD COLUMN unanswered integer NOT NULL DEFAULT 0;
CREATE INDEX deliveries_unanswered ON deliveries (lease_until)
    WHERE status = 'pending' AND unanswered >= 20;

-- Connections keep the plans of the worker's statements, so no index may suit them only while the table is small: a
-- claim must find the rows of an origin by origin. The oldest delivery is also found by origin.
DROP INDEX deliveries_by_next_attempt;
