DROP TABLE webhook_tests;
-- Rows with the new value stay.
DO $$
DECLARE
    constraint_name constant text := 'audit_log_action_check';
    allowed text;
BEGIN
    SELECT string_agg(quote_literal(texts[1]), ', ' ORDER BY number) INTO STRICT allowed
    FROM pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''([a-z-]+)''', 'g')
        WITH ORDINALITY AS literals (texts, number)
    WHERE conrelid = 'audit_log'::regclass AND conname = constraint_name AND texts[1] <> 'webhook-tested';
    EXECUTE format('ALTER TABLE audit_log DROP CONSTRAINT %1$I, ADD CONSTRAINT %1$I CHECK (action IN (%2$s)) NOT VALID',
        constraint_name, allowed);
END $$;
