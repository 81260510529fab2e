-- Whether a task was withdrawn before it was decided. Its status is `rejected` then, so that processes of an earlier version,
-- which know no other end without approval, can read it; the later ones show `cancelled`. A later version may write that
-- status, too.
ALTER TABLE task_states
    ADD COLUMN cancelled boolean NOT NULL DEFAULT false,
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT task_states_status_check1,
    ADD CONSTRAINT task_states_status_check1 CHECK (status IN ('pending', 'approved', 'rejected', 'cancelled')) NOT VALID;
