CREATE INDEX CONCURRENTLY IF NOT EXISTS credentials_by_created_by ON credentials (created_by) WHERE created_by IS NOT NULL;
