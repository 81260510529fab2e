-- The time of the user's latest change that the erasure follows, on the clock of the user service, as in `changed_users`. A
-- report that the user was active later removes the row. NULL from processes of an earlier version: then `erased` counts.
ALTER TABLE erased_users ADD COLUMN changed timestamptz;
