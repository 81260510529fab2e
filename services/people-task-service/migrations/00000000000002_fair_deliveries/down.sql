ALTER TABLE deliveries RESET (autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor);
DROP INDEX deliveries_by_next_attempt;
DROP INDEX deliveries_parked;
DROP INDEX deliveries_leased;
DROP INDEX deliveries_by_origin;
DROP INDEX deliveries_by_wake_at;
ALTER TABLE deliveries DROP COLUMN parked;
CREATE INDEX deliveries_by_wake_at ON deliveries (wake_at) WHERE status = 'pending';
