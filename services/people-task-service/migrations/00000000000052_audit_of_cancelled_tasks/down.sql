ALTER TABLE audit_log
    DROP CONSTRAINT audit_log_action_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'task-created', 'task-edited', 'task-approved', 'task-rejected', 'webhook-registered',
        'webhook-removed', 'delivery-redelivered', 'delivery-cancelled', 'deliveries-paused', 'deliveries-resumed',
        'user-erased'
    )) NOT VALID;
