DROP INDEX CONCURRENTLY IF EXISTS credentials_by_notice_due;
