CREATE INDEX CONCURRENTLY IF NOT EXISTS webhooks_by_header_key ON webhooks (header_key) WHERE header_key IS NOT NULL;
