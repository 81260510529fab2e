ALTER TABLE webhooks DROP CONSTRAINT webhooks_have_short_hosts;
