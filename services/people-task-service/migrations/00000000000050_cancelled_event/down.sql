ALTER TABLE webhooks DROP COLUMN on_cancelled;
