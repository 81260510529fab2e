-- The group of the creator's account, if a stranger made it: the accounts of one group count as one where creators share the
-- mails to a person, and take one turn, in `task_mails.creator`. Null for tasks of earlier versions.
ALTER TABLE mailed_tasks ADD COLUMN account_group bytea;
