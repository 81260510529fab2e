CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_with_options_suspected ON deliveries (next_attempt)
    WHERE option_claims >= 2;
