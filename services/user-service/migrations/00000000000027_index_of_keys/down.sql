DROP INDEX CONCURRENTLY IF EXISTS credentials_of_keys_by_created;
