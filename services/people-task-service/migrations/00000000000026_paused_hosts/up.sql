-- Lets administrators pause the deliveries to a host. Workers read the table with each claim, so it stays small.

CREATE TABLE paused_hosts (
    -- As in `deliveries`.
    host text PRIMARY KEY,
    paused timestamptz NOT NULL DEFAULT now()
);

-- The rows that exist have fewer values, so they are not checked now.
ALTER TABLE audit_log
    -- squawk-ignore ban-drop-constraint -- the same statement adds one that allows more
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'task-created', 'task-edited', 'task-approved', 'task-rejected', 'webhook-registered',
        'webhook-removed', 'delivery-redelivered', 'delivery-cancelled', 'deliveries-paused', 'deliveries-resumed',
        'user-erased'
    )) NOT VALID;
