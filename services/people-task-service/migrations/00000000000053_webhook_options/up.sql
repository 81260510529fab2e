ALTER TABLE webhooks
    -- How its calls differ from others, as JSON (`webhook_options`); NULL for most webhooks.
    ADD COLUMN options text,
    -- The identifier of the key that sealed the values of its headers.
    ADD COLUMN header_key text;
