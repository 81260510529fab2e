CREATE INDEX CONCURRENTLY IF NOT EXISTS due_dates_by_creator ON due_dates (creator, due_at);
