DROP INDEX finished_deliveries_failed_by_host;
DROP INDEX finished_deliveries_failed;
DROP TRIGGER set_host_of_failed_delivery ON finished_deliveries;
DROP FUNCTION set_host_of_failed_delivery();
ALTER TABLE finished_deliveries DROP COLUMN host;
-- Rows with the new value stay.
ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'task-created', 'task-edited', 'task-approved', 'task-rejected', 'webhook-registered',
        'webhook-removed', 'delivery-redelivered', 'user-erased'
    )) NOT VALID;
