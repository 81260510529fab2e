-- The values that this service writes to its audit log. An older version of the migration that creates the table
-- had them, too.

-- Dropping constraints that a new database does not have is not worth a notice.
SET LOCAL client_min_messages = warning;

ALTER TABLE audit_log
    DROP CONSTRAINT IF EXISTS audit_log_action_check,
    DROP CONSTRAINT IF EXISTS audit_log_actor_kind_check,
    DROP CONSTRAINT IF EXISTS audit_log_subject_kind_check,
    DROP CONSTRAINT IF EXISTS audit_log_proof_check,
    ADD CONSTRAINT audit_log_action_check CHECK (action IN (
        'task-created', 'task-edited', 'task-approved', 'task-rejected', 'webhook-registered',
        'webhook-removed', 'delivery-redelivered', 'user-erased'
    )),
    ADD CONSTRAINT audit_log_actor_kind_check CHECK (actor_kind IN ('user', 'admin', 'service', 'approver-secret', 'requester-secret')),
    ADD CONSTRAINT audit_log_subject_kind_check CHECK (subject_kind IN ('task', 'user')),
    ADD CONSTRAINT audit_log_proof_check CHECK (proof IN ('token', 'task-secret', 'service-token'));
