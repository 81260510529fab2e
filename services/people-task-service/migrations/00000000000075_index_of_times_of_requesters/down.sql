DROP INDEX CONCURRENTLY IF EXISTS tasks_by_time_of_requester;
