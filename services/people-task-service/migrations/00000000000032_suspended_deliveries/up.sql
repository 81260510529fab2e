ALTER TABLE deliveries
    -- The user who registered the webhook and has no right to the task now. The delivery waits for that right.
    ADD COLUMN suspended_for bytea;
