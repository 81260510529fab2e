ALTER TABLE task_mails
    DROP CONSTRAINT task_mails_kind_check,
    ADD CONSTRAINT task_mails_kind_check CHECK (kind IN ('asked', 'reminder', 'due', 'decided')) NOT VALID;
