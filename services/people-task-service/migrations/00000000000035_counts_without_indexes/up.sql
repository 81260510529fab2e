-- Counts of a person's tasks read the indexes of pages. These indexes made the counts of a person with 200,000 tasks
-- faster, no others, and were written with each task.
-- squawk-ignore require-concurrent-index-deletion -- it waits for its lock as ADD COLUMN does, and holds it for milliseconds
DROP INDEX IF EXISTS tasks_counted_by_creator, tasks_counted_by_approver, tasks_counted_by_requester;
