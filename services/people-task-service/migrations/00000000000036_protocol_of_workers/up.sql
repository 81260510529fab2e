-- What a worker can do, as a number that grows with the kinds of deliveries: 1 since there are deliveries of due dates. It
-- replaces `sends_due`, which the next release drops.
ALTER TABLE delivery_workers ADD COLUMN protocol bigint NOT NULL DEFAULT 0;
