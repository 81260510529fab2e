-- Webhooks for tasks of others. A flow engine has many for its own tasks, which an erasure finds by the tasks.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhooks_of_others ON webhooks (registered_by)
    WHERE registered_as IS DISTINCT FROM 'creator';
