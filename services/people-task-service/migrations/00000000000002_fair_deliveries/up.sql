-- Deliveries are claimed by origin. When a request to an origin finishes, an index finds the origin's next delivery,
-- however many wait.

-- The delivery is due, but its origin is at its limit of concurrent requests. Sweeps skip it: it is claimed when one
-- of those requests finishes.
ALTER TABLE deliveries ADD COLUMN parked boolean NOT NULL DEFAULT false;

DROP INDEX deliveries_by_wake_at;
CREATE INDEX deliveries_by_wake_at ON deliveries (wake_at) WHERE status = 'pending' AND NOT parked;
-- The next delivery of an origin.
CREATE INDEX deliveries_by_origin ON deliveries (origin, next_attempt, id) WHERE status = 'pending';
-- The current requests to an origin, over all workers.
CREATE INDEX deliveries_leased ON deliveries (origin, lease_until)
    WHERE status = 'pending' AND lease_until IS NOT NULL;
-- The origins that have parked deliveries.
CREATE INDEX deliveries_parked ON deliveries (origin) WHERE status = 'pending' AND parked;
-- The oldest delivery that is due.
CREATE INDEX deliveries_by_next_attempt ON deliveries (next_attempt) WHERE status = 'pending';

-- Every delivery is updated several times, so dead rows are vacuumed early.
ALTER TABLE deliveries SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
