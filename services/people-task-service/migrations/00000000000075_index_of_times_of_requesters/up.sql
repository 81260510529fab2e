-- Tasks that got a requester by an edit, which the erasure of that requester finds by the time of the edit.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_time_of_requester ON tasks (requester_key, requester_since, id)
    WHERE requester_since IS NOT NULL;
