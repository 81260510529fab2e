-- Calls that try a webhook. The people-task-service inserts a row, a webhook-worker takes it and writes the result. Each
-- is made at most once. They are kept for an hour, by which their number is limited.
CREATE TABLE webhook_tests (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 12),
    webhook_id bytea NOT NULL CHECK (octet_length(webhook_id) = 12),
    requested_by bytea NOT NULL CHECK (octet_length(requested_by) = 12),
    requested timestamptz NOT NULL DEFAULT now(),
    request_id text NOT NULL,
    traceparent text NOT NULL,
    -- When a worker took it, or the caller stopped waiting.
    taken timestamptz,
    -- What came of it, as the API shows it.
    result jsonb
);

CREATE INDEX webhook_tests_requested ON webhook_tests (requested);
CREATE INDEX webhook_tests_waiting ON webhook_tests (requested) WHERE taken IS NULL;

-- Adds an action to those that are allowed, whichever they are. The rows that exist have no other, so they are not checked
-- now.
DO $$
DECLARE
    constraint_name constant text := 'audit_log_action_check';
    allowed text;
BEGIN
    SELECT string_agg(quote_literal(texts[1]), ', ' ORDER BY number) || ', ''webhook-tested''' INTO STRICT allowed
    FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''([a-z-]+)''', 'g')
        WITH ORDINALITY AS literals (texts, number)
    WHERE conrelid = 'audit_log'::regclass AND conname = constraint_name;
    EXECUTE format('ALTER TABLE audit_log DROP CONSTRAINT %1$I, ADD CONSTRAINT %1$I CHECK (action IN (%2$s)) NOT VALID',
        constraint_name, allowed);
END $$;
