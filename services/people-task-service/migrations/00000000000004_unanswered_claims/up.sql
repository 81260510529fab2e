-- A delivery whose attempts never end, because they take the worker down with them, is given up in time.

-- Claims in a row that ended without a result.
ALTER TABLE deliveries ADD COLUMN unanswered integer NOT NULL DEFAULT 0;
CREATE INDEX deliveries_unanswered ON deliveries (lease_until)
    WHERE status = 'pending' AND unanswered >= 20;

-- Connections keep the plans of the worker's statements, so no index may look right for them only while the
-- table is small: a claim must find the rows of an origin by origin. The oldest delivery is found by origin, too.
DROP INDEX deliveries_by_next_attempt;
