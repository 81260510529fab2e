-- Adds one row to the audit log, for statements that change several tables at once. It runs with the caller's
-- rights.
CREATE FUNCTION record_audit_entry(entry jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO people_task.audit_log
        (action, actor_kind, actor_id, subject_kind, subject_id, proof, client_address, request_id, detail)
    VALUES (
        entry ->> 'action', entry ->> 'actor_kind', decode(entry ->> 'actor_id', 'hex'),
        entry ->> 'subject_kind', decode(entry ->> 'subject_id', 'hex'), entry ->> 'proof',
        (entry ->> 'client_address')::inet, entry ->> 'request_id', nullif(entry -> 'detail', 'null')
    );
END $$;
