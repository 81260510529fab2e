CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_by_lane ON deliveries (lane, next_attempt);
