ALTER TABLE webhooks DROP COLUMN on_approved, DROP COLUMN on_rejected, DROP COLUMN on_due, DROP COLUMN last_due;
