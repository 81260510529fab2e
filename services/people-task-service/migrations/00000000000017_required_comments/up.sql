-- Whether the rejection of a task needs a comment.
ALTER TABLE tasks ADD COLUMN comment_required boolean NOT NULL DEFAULT false;
