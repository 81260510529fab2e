DROP INDEX CONCURRENTLY IF EXISTS credentials_by_created_by;
