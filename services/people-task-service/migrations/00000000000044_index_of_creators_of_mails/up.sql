CREATE INDEX CONCURRENTLY IF NOT EXISTS task_mails_by_creator ON task_mails (creator, next_attempt);
