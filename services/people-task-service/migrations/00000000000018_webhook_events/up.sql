-- The events that a webhook is called for. Those that exist already are called for decisions.
ALTER TABLE webhooks
    ADD COLUMN on_approved boolean NOT NULL DEFAULT true,
    ADD COLUMN on_rejected boolean NOT NULL DEFAULT true,
    ADD COLUMN on_due boolean NOT NULL DEFAULT false,
    -- The due date of the newest `due` event, as long as the webhook's status is about that event.
    ADD COLUMN last_due timestamptz;
