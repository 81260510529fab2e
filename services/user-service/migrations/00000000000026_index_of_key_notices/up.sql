CREATE INDEX CONCURRENTLY IF NOT EXISTS credentials_by_notice_due ON credentials (notice_due) WHERE notice_due IS NOT NULL;
