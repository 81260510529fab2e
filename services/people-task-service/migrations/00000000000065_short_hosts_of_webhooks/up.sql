-- Processes of earlier versions may still register such a webhook after the next migration has removed the others.
ALTER TABLE webhooks ADD CONSTRAINT webhooks_have_short_hosts CHECK (octet_length(host) <= 253) NOT VALID;
