CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_suspended ON deliveries (suspended_for)
    WHERE suspended_for IS NOT NULL;
