-- An edit by another user than the task's creator made the mail: such mails use up only a part of what the creator may send.
ALTER TABLE task_mails ADD COLUMN is_of_another boolean NOT NULL DEFAULT false;
