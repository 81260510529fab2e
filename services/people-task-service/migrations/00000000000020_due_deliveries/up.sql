-- A delivery is of a decision or of a due date. Each table is changed by a migration of its own: a transaction that
-- holds one and waits for the next could deadlock with the statements of running processes.
ALTER TABLE deliveries
    -- The due date that has passed; null if it is a decision.
    ADD COLUMN due_at timestamptz;
