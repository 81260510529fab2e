-- Who decides a task, if not everyone who may by default. `approver` is the approver, signed in or by the link that is
-- mailed to them; `signed-in` is the approver with an account. Without `self_approval`, who created or requested the task
-- does not decide it.
ALTER TABLE tasks ADD COLUMN deciders text, ADD COLUMN self_approval boolean NOT NULL DEFAULT true;
-- SHA-256 of the secret that the creator of such a task is told, which only opens it.
ALTER TABLE tasks ADD COLUMN reading_secret bytea;
-- How a task was decided: the type of credential, the key, and whether an administrator overrode `deciders`.
ALTER TABLE task_states ADD COLUMN decided_via jsonb, ADD COLUMN is_restricted boolean NOT NULL DEFAULT false;
-- A process of the release before does not know who decides these tasks, so it cannot decide them.
ALTER TABLE task_states ADD CONSTRAINT restricted_tasks_are_decided_knowingly CHECK (
    NOT is_restricted OR status NOT IN ('approved', 'rejected') OR decided_via IS NOT NULL) NOT VALID;
