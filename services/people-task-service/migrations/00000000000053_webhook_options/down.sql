ALTER TABLE webhooks DROP COLUMN header_key, DROP COLUMN options;
