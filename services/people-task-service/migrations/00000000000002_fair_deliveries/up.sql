-- Deliveries are claimed by origin: when a request to an origin ends, its next delivery is found by an
-- index, however many wait.

-- Due, but its origin has all the requests that it may have at a time. No sweep looks at it: it is
-- claimed when one of those requests ends.
ALTER TABLE deliveries ADD COLUMN parked boolean NOT NULL DEFAULT false;

DROP INDEX deliveries_by_wake_at;
CREATE INDEX deliveries_by_wake_at ON deliveries (wake_at) WHERE status = 'pending' AND NOT parked;
-- The next delivery of an origin.
CREATE INDEX deliveries_by_origin ON deliveries (origin, next_attempt, id) WHERE status = 'pending';
-- The requests that an origin has now, over all workers.
CREATE INDEX deliveries_leased ON deliveries (origin, lease_until)
    WHERE status = 'pending' AND lease_until IS NOT NULL;
-- The origins that have deliveries waiting.
CREATE INDEX deliveries_parked ON deliveries (origin) WHERE status = 'pending' AND parked;
-- The oldest delivery that is due.
CREATE INDEX deliveries_by_next_attempt ON deliveries (next_attempt) WHERE status = 'pending';

-- Every delivery is updated a few times, so dead rows are cleared away early.
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
