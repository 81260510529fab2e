CREATE INDEX CONCURRENTLY IF NOT EXISTS credentials_of_keys_by_created ON credentials (created, id) WHERE kind = 'key';
