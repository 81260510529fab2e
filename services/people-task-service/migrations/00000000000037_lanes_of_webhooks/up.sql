-- The lane of a webhook's deliveries: the origin of its URL, and whose share of the workers they use. Deliveries of one
-- lane wait for each other; lanes are served in turn. Each table is changed by a migration of its own.
ALTER TABLE webhooks
    -- NULL for webhooks of earlier versions.
    ADD COLUMN lane text;
