ALTER TABLE task_states DROP CONSTRAINT restricted_tasks_are_decided_knowingly, DROP COLUMN is_restricted,
    DROP COLUMN decided_via;
ALTER TABLE tasks DROP COLUMN reading_secret, DROP COLUMN self_approval, DROP COLUMN deciders;
