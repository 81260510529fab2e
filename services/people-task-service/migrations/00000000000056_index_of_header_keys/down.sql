DROP INDEX CONCURRENTLY IF EXISTS webhooks_by_header_key;
