ALTER TABLE task_states
    DROP COLUMN cancelled,
    DROP CONSTRAINT task_states_status_check1,
    ADD CONSTRAINT task_states_status_check1 CHECK (status IN ('pending', 'approved', 'rejected')) NOT VALID;
