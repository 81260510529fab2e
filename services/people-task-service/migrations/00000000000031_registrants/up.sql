-- A webhook is called only while the user who registered it has a right to its task. What gave the right is kept when
-- the webhook is registered, and compared with the task and the user before each attempt.
ALTER TABLE webhooks
    -- NULL for webhooks of earlier versions.
    ADD COLUMN registered_as text,
    -- The user's address in lower case, if it is the approver's or the requester's.
    ADD COLUMN registrant_email text,
    -- The hash of the approver's or the requester's secret, if the user presented it.
    ADD COLUMN registrant_secret bytea,
    ADD CONSTRAINT webhooks_registered_as_check
        CHECK (registered_as IN ('creator', 'administrator', 'approver', 'requester')) NOT VALID;

-- Users that have changed since they signed up, as the user service reports them. Others are what their tokens say.
CREATE TABLE changed_users (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    -- When the user changed. An older report does not replace a newer one.
    changed timestamptz NOT NULL,
    is_active boolean NOT NULL,
    is_admin boolean NOT NULL,
    -- In lower case; NULL if the address gives no rights, because it is not confirmed.
    email text
);
