-- Who decided a task, and what that person wrote about it. Both are null for tasks that were decided before.
ALTER TABLE task_states
    -- E-mail address.
    ADD COLUMN decided_by text,
    ADD COLUMN comment text;
-- All rows have null, so there is nothing to validate.
ALTER TABLE task_states ADD CONSTRAINT task_states_comment_check CHECK (char_length(comment) <= 2000) NOT VALID;
