-- Whether the page asks for a second press before it sends the decision of a task.
ALTER TABLE tasks ADD COLUMN confirmation_required boolean NOT NULL DEFAULT false;
