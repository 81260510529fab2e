CREATE INDEX CONCURRENTLY IF NOT EXISTS credentials_of_keys_by_id ON credentials (id) WHERE kind = 'key';
