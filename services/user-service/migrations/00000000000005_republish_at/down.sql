DROP INDEX notifications_by_republish_at;
DROP INDEX deletions_by_republish_at;
ALTER TABLE notifications ALTER COLUMN lease TYPE integer;
ALTER TABLE notifications RENAME COLUMN lease TO attempts;
ALTER TABLE notifications RENAME COLUMN republish_at TO wake_at;
ALTER TABLE deletions RENAME COLUMN republish_at TO wake_at;
CREATE INDEX notifications_by_wake_at ON notifications (wake_at) WHERE status = 'pending';
CREATE INDEX deletions_by_wake_at ON deletions (wake_at) WHERE status = 'in-progress';
