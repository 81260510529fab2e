-- The approver who was asked is told that the task was withdrawn.
ALTER TABLE task_mails
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT task_mails_kind_check,
    ADD CONSTRAINT task_mails_kind_check CHECK (kind IN ('asked', 'reminder', 'due', 'decided', 'cancelled')) NOT VALID;
