-- Both tables of jobs get the same columns. Stop processes of earlier versions before this runs: they use
-- the old names.

ALTER TABLE deletions RENAME COLUMN wake_at TO republish_at;
ALTER TABLE notifications RENAME COLUMN wake_at TO republish_at;

-- Every claim of a notification is an attempt, so the count of attempts is the number of the lease.
ALTER TABLE notifications RENAME COLUMN attempts TO lease;
ALTER TABLE notifications ALTER COLUMN lease TYPE bigint;

-- The statements on jobs do not know the words of a status.
DROP INDEX deletions_by_wake_at;
DROP INDEX notifications_by_wake_at;
CREATE INDEX deletions_by_republish_at ON deletions (republish_at) WHERE finished IS NULL;
CREATE INDEX notifications_by_republish_at ON notifications (republish_at) WHERE finished IS NULL;
