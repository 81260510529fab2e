-- Whether a webhook is called when its task is withdrawn. Those that exist already are not.
ALTER TABLE webhooks ADD COLUMN on_cancelled boolean NOT NULL DEFAULT false;
